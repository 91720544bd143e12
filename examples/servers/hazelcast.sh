#!/bin/sh
# Starts a member of Hazelcast in the foreground, with the jar that scripts/hazelcast downloads:
#   hazelcast.sh HOST CLIENT-PORT CLIENT-ADDRESS PEER-PORT PEER-ADDRESS PEERS
# The addresses are the announced ones, in front of the ports; PEERS are the announced addresses of all members.
set -e
here=$(dirname "$0")
exec java -Xmx128m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dhazelcast.phone.home.enabled=false \
  -Dhazelcast.logging.type=jdk -Dhazelcast.config="$here/hazelcast-member.yaml" \
  -Dhazelcast.local.localAddress="$1" -Dhazelcast.socket.bind.any=false -Dclient.port="$2" -Dclient.address="$3" -Dpeer.port="$4" -Dpeer.address="$5" -Dpeers="$6" \
  -cp "$here/../../bin/hazelcast/*" com.hazelcast.core.server.HazelcastMemberStarter
