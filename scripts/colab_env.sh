#!/usr/bin/env bash
# Make the environment FOLDER with the versions of tests/colab/requirements.txt, and notebook_accel beside them.
set -euo pipefail

folder=$1
uv=${UV:-uv}
stamp="$folder/.installed"
lock=tests/colab/requirements.txt

find_python() {
    local candidate
    for candidate in python3.13 "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.13*/bin/python; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 13))' 2>/dev/null; then
            "$candidate" -c 'import sys; print(sys.executable)'
            return
        fi
    done
    echo 3.13 # uv brings its own
}

if [[ $stamp -nt $lock && $stamp -nt setup.cfg ]]; then
    exit 0
fi
[[ -x $folder/bin/python ]] || "$uv" venv --quiet --python "$(find_python)" "$folder"
"$uv" pip sync --quiet --python "$folder/bin/python" "$lock"
# --no-deps: what Colab has must be enough, which "pip check" then confirms.
"$uv" pip install --quiet --no-deps --python "$folder/bin/python" --editable .
"$uv" pip check --python "$folder/bin/python"
touch "$stamp"
