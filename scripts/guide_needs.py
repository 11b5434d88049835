"""What pages of the guide need beside the binary: a database, or the packages of the SDKs.

Each provider changes the environment of the page and returns what ends it. Nothing here reads the pages.
"""

import glob
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Missing(Exception):
    """What a page needs is not there."""


def provide(need, home, env, ports):
    return {"postgresql": postgresql, "python": python, "npm": npm}[need](home, env, ports)


def run(*command, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)
    if done.returncode:
        raise Missing(f"{' '.join(command)}:\n{done.stdout}")


def postgresql(home, env, ports):
    found = [shutil.which("postgres"), *sorted(glob.glob("/usr/lib/postgresql/*/bin/postgres"))]
    programs = os.path.dirname(os.path.realpath([path for path in found if path][-1]))
    folder = tempfile.mkdtemp(prefix="stepwell-guide-pg-")
    # PostgreSQL refuses to run as root.
    as_user = {}
    if os.getuid() == 0:
        user = pwd.getpwnam("postgres")
        os.chown(folder, user.pw_uid, user.pw_gid)
        as_user = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    data = os.path.join(folder, "data")
    run(f"{programs}/initdb", "-D", data, "-A", "trust", "-U", "stepwell", "--no-locale", "-E", "UTF8", "-N", cwd=folder,
        **as_user)
    server = subprocess.Popen(
        [f"{programs}/postgres", "-D", data, "-p", ports["5432"], "-k", folder, "-h", "127.0.0.1"], cwd=folder,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **as_user,
    )
    env["PATH"] += f":{programs}"
    at = ["-h", "127.0.0.1", "-p", ports["5432"]]

    def end():
        # SIGQUIT: nothing of this database is kept.
        server.send_signal(3)
        server.wait()
        shutil.rmtree(folder, ignore_errors=True)

    try:
        wait(lambda: not subprocess.run([f"{programs}/pg_isready", "-q", *at]).returncode)
        run(f"{programs}/createdb", *at, "-U", "stepwell", "stepwell")
    except BaseException:
        end()
        raise
    return end


def wait(ready, limit=30):
    until = time.monotonic() + limit
    while not ready():
        if time.monotonic() > until:
            raise Missing("the database is not ready")
        time.sleep(0.05)


def python(home, env, ports):
    """The wheel of this repository in `packages`."""
    run(sys.executable, os.path.join(ROOT, "scripts/package/wheel.py"), os.path.join(home, "work/packages"))
    keep(env, "PIP_")
    return lambda: None


def npm(home, env, ports):
    """The client of this repository in `packages`."""
    sdk = os.path.join(ROOT, "sdk/typescript")
    if not os.path.exists(f"{sdk}/node_modules/.bin/tsc"):
        run("npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", cwd=sdk)
    # A copy, because other suites build in that folder at the same time.
    copy = os.path.join(home, "sdk")
    shutil.copytree(sdk, copy, ignore=shutil.ignore_patterns("node_modules", "dist"))
    os.symlink(f"{sdk}/node_modules", f"{copy}/node_modules")
    run("npm", "run", "--silent", "build", cwd=copy)
    packages = os.path.join(home, "work/packages")
    os.mkdir(packages)
    run("npm", "pack", "--silent", "--pack-destination", packages, cwd=copy)
    env["npm_config_update_notifier"] = "false"
    keep(env, "npm_config_")
    return lambda: None


def keep(env, prefix):
    """Settings of this machine that installers need to reach their index."""
    for name, value in os.environ.items():
        if name.startswith(prefix) or name.lower() in ("http_proxy", "https_proxy", "no_proxy", "ssl_cert_file"):
            env.setdefault(name, value)
    config = os.path.join(os.path.expanduser("~"), ".config/pip/pip.conf")
    for found in (config, os.path.expanduser("~/.pip/pip.conf")):
        if os.path.exists(found):
            env.setdefault("PIP_CONFIG_FILE", found)
