#!/bin/sh
# The same in shell, over lines: a program in any language is a client so.
echo '{"did": "ready"}'
while read -r line; do
    case $line in
        *'"publish"'*)
            id=$(printf '%s' "$line" | sed 's/.*"id": \([0-9]*\).*/\1/')
            payload=$(printf '%s' "$line" | sed 's/.*"payload": "\([^"]*\)".*/\1/')
            echo "{\"did\": \"sent\", \"id\": $id}"
            echo "{\"did\": \"got\", \"payload\": \"$payload\"}"
            echo "{\"did\": \"acknowledged\", \"id\": $id}"
            ;;
        *'"finish"'*) exit 0 ;;
    esac
done
