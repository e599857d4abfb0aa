#!/bin/sh
# sh mosquitto.sh publish|subscribe ADDRESS PORT TOPIC: a client of any MQTT broker over cutset_client.stdio, by
# mosquitto's own programs. A payload stays the text that it is in JSON, base64, which packets are searched for too.

what=$1 address=$2 port=$3 topic=$4

if [ "$what" = subscribe ]; then
    # -d tells when the broker has accepted the subscription; all else that it tells is left out.
    stdbuf -oL mosquitto_sub -d -h "$address" -p "$port" -t "$topic" -F '{"did": "got", "payload": "%p", "topic": "%t"}' |
        sed -u -n -e 's/^Subscribed.*/{"did": "ready"}/p' -e '/^{"did"/p' &
    while read -r line; do
        case $line in *'"finish"'*) break ;; esac
    done
    kill 0
fi

mkfifo events
mosquitto_pub -l -h "$address" -p "$port" -t "$topic" <events >&2 &
exec 3>events
echo '{"did": "ready"}'
while read -r line; do
    case $line in
        *'"publish"'*)
            id=${line#*'"id": '} payload=${line#*'"payload": "'}
            echo "{\"did\": \"sent\", \"id\": ${id%%,*}}"
            echo "${payload%%\"*}" >&3
            ;;
        *'"finish"'*) break ;;
    esac
done
exec 3>&-
wait
