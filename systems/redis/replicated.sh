# Exits with code 0 when a server is the master, or a synchronised replica: replicated.sh ADDRESS PORT
set -eu
until redis-cli -h "$1" -p "$2" info replication | grep -q '^role:master\|^master_link_status:up'; do sleep 0.1; done
