# Exits with code 0 when all masters are one cluster: clustered.sh NUMBER "ADDRESS:PORT …", its own first. Number 0 creates it.
set -eu
own=${2%% *}
count=$(echo "$2" | wc -w)
ask() { redis-cli -h "${1%:*}" -p "${1#*:}" "$2" "$3"; }
agreed() { ask "$own" cluster info | grep -q '^cluster_state:ok' && ask "$own" cluster info | grep -q "^cluster_known_nodes:$count"; }
if [ "$1" = 0 ] && ! agreed; then
    for each in $2; do ask "$each" cluster info >/dev/null; done
    # shellcheck disable=SC2086  # addresses, word by word
    redis-cli --cluster create $2 --cluster-yes >&2
fi
until agreed; do sleep 0.1; done
