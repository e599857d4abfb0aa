#!/bin/sh
# A subscriber over lines that says of every topic at once that it is subscribed, or not any more.
while read -r line; do
    case $line in
        *'"subscribe"'*) did=subscribed ;;
        *'"unsubscribe"'*) did=unsubscribed ;;
        *'"finish"'*) exit 0 ;;
        *) continue ;;
    esac
    topics=$(printf '%s' "$line" | sed 's/.*"topics": //; s/}$//')
    echo "{\"did\": \"$did\", \"topics\": $topics}"
    echo '{"did": "ready"}'
done
