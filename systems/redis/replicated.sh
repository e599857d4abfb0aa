# Ends with code 0 once a server is the master, or its replica and in step: replicated.sh ADDRESS PORT
set -eu
until redis-cli -h "$1" -p "$2" info replication | grep -q '^role:master\|^master_link_status:up'; do sleep 0.1; done
