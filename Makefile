# Two commands on a fresh machine:  make demo   make test
# Everything is kept in this folder: .venv (the package and its tools), .setup (Jupyter's own files), demo-output.

PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
STATE := $(CURDIR)/.setup
PYTEST := $(PY) -m pytest
OLD_LIBRARIES := -W ignore::DeprecationWarning -W ignore::ResourceWarning -W ignore::pytest.PytestUnraisableExceptionWarning

export IPYTHONDIR := $(STATE)/ipython
export JUPYTER_CONFIG_DIR := $(STATE)/jupyter/config
export JUPYTER_DATA_DIR := $(STATE)/jupyter/data
export JUPYTER_RUNTIME_DIR := $(STATE)/jupyter/runtime
export MPLCONFIGDIR := $(STATE)/matplotlib
export JUPYTER_PLATFORM_DIRS := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help demo test lab check test-colab test-browser bench clean

help:
	@echo "make demo          train the quickstart and leave its notebook and loss plot in demo-output/"
	@echo "make test          run the tests"
	@echo "make lab           open JupyterLab on notebooks/"
	@echo "make check         ruff and mypy"
	@echo "make test-colab    run the notebook tests with the versions that Colab has (needs Python 3.13, 7 GB)"
	@echo "make test-browser  run the quickstart in JupyterLab in a real browser (needs Chromium)"
	@echo "make bench         what a launch, a step and a logged number cost, as ratios"
	@echo "make clean         remove everything that these made"

demo: $(VENV)/.installed-notebook
	$(PY) scripts/run_notebook.py notebooks/01_quickstart.ipynb demo-output

lab: $(VENV)/.installed-notebook
	$(VENV)/bin/jupyter lab --ServerApp.root_dir=notebooks

test: $(VENV)/.installed-test
	$(PYTEST)

check: $(VENV)/.installed-check
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

test-browser: $(VENV)/.installed-browser
	$(PYTEST) tests/browser

test-colab: $(VENV)/.installed-colab
	UV="$(VENV)/bin/uv" bash scripts/colab_env.sh .venv-colab
	.venv-colab/bin/python -m pytest $(OLD_LIBRARIES) tests/colab tests/notebook tests/launch

bench: $(VENV)/.installed-test
	$(PY) benchmarks/basics.py

# One stamp per extra of setup.cfg: a second call installs nothing.
$(VENV)/.installed-%: setup.cfg pyproject.toml constraints.txt | $(PY)
	@echo "installing notebook_accel[$*] into $(VENV)"
	@$(PY) -m pip install --quiet -c constraints.txt -e ".[$*]"
	@touch $@

$(PY):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "notebook_accel needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1)."; \
	  echo "Name another one:  make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)

clean:
	rm -rf $(VENV) .venv-colab .setup demo-output .browser build dist *.egg-info
	rm -rf .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
