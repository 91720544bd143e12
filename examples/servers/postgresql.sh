#!/bin/sh
# Starts a PostgreSQL server in the foreground, which trusts all connections: postgresql.sh HOST PORT DIRECTORY
#
# If the system allows it, the server runs in namespaces of its own: root has another number there, because PostgreSQL
# refuses root, and a killed server leaves neither processes nor shared memory.
set -e
spaces="unshare --user --ipc --pid --fork --kill-child --map-user=1000 --map-group=1000"
if [ "$4" != inside ] && $spaces true 2>/dev/null; then
  exec $spaces sh "$0" "$1" "$2" "$3" inside
fi
PATH="$PATH:$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -1)"
data="$3/data"
if [ ! -e "$data/PG_VERSION" ]; then
  initdb -D "$data" -U postgres --auth=trust --no-locale --no-sync --no-instructions
fi
exec postgres -D "$data" -h "$1" -p "$2" -c unix_socket_directories= -c dynamic_shared_memory_type=mmap
