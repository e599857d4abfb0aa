#!/bin/sh
# A program on another machine is killed. An SSH server may say so by "exit-signal" (RFC 4254, 6.10) with the
# signal's name. What does the client's library tell?
#
# Packages: paramiko==5.1.0 beside a server of asyncssh==2.24.1, on loopback
# Guess: the exit status is 128 + 9, as a shell would say.
# Seen: the status is -1, which paramiko also gives if no status came at all; the signal's name is not to be had.
set -eu
there=$(mktemp -d)
trap 'rm -rf "$there"' EXIT
cd "$there"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check paramiko==5.1.0 asyncssh==2.24.1
venv/bin/python - <<'PYTHON'
import asyncio
import io

import asyncssh
import paramiko


class Server(asyncssh.SSHServer):
    def begin_auth(self, username):
        return True

    def public_key_auth_supported(self):
        return True

    def validate_public_key(self, username, key):
        return key == clients_key.convert_to_public()


def serve(process):
    if process.command == "killed":
        process.exit_with_signal("KILL", False, "")
    else:
        process.exit(3)


def as_paramiko(key):
    return paramiko.Ed25519Key(file_obj=io.StringIO(key.export_private_key("openssh").decode()))


def statuses(port):
    with paramiko.SSHClient() as client:
        client.get_host_keys().add(f"[127.0.0.1]:{port}", "ssh-ed25519", as_paramiko(servers_key))
        client.connect(
            "127.0.0.1", port, "tester", pkey=as_paramiko(clients_key), allow_agent=False, look_for_keys=False
        )
        return [client.exec_command(each)[1].channel.recv_exit_status() for each in ("ended", "killed")]


async def main():
    server = await asyncssh.create_server(
        Server, "127.0.0.1", 0, server_host_keys=[servers_key], process_factory=serve
    )
    async with server:
        return await asyncio.to_thread(statuses, server.sockets[0].getsockname()[1])


servers_key, clients_key = (asyncssh.generate_private_key("ssh-ed25519") for _ in range(2))
seen = asyncio.run(main())
print("status of a program that ended with 3, and of one that was killed:", seen)
assert seen == [3, -1]
PYTHON
