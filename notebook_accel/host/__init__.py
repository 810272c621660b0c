"""Facts about the machine and the front end; loads no device driver."""
