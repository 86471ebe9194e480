# Sourced by ./tidelog and ./test, with $root set: the environment in $root/.venv.
# POSIX sh, since Python 3.11 may be the only thing on the machine, and not under the name python3.

# Once the environment is made, this is all that runs: one checksum, about a millisecond.
environment_is_made() { # run|test
    [ -x "$root/.venv/bin/python" ] && [ -r "$root/.venv/made-for-$1" ] || return 1
    read -r made_for <"$root/.venv/made-for-$1" || return 1
    sum=$(sha256sum "$root/locks/$1.txt" 2>/dev/null) || return 1
    [ "${sum%% *}" = "$made_for" ]
}

is_python_311() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

find_python() {
    # First what .venv was made with: an environment keeps its Python while that works.
    for python in ${TIDELOG_PYTHON:+"$TIDELOG_PYTHON"} "$root/.venv/bin/python" \
        python3 python3.13 python3.12 python3.11 python3.14 python; do
        if is_python_311 "$python"; then
            return 0
        fi
    done
    found=$(python3 --version 2>/dev/null) || found="no Python 3"
    echo "tidelog: Python 3.11 or later is needed and $found was found;" \
        "install one (Debian, Ubuntu: apt install python3 python3-venv) or name it in TIDELOG_PYTHON." >&2
    return 1
}

ensure_environment() { # run|test
    environment_is_made "$1" && return 0
    find_python || return 1
    "$python" "$root/tools/make_environment.py" "$1"
}
