# Starts a RabbitMQ node from the files of this folder, and Erlang's name server, both in this process group: broker.sh HOST.
set -eu
(umask 077 && printf cutset >"$HOME/.erlang.cookie") # nodes with the same cookie trust each other
epmd & # otherwise Erlang starts one that does not end with the node
until epmd -names >/dev/null 2>&1; do sleep 0.1; done
export LC_ALL=C.UTF-8
export RABBITMQ_NODENAME="rabbit@$1" RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS='-start_epmd false +S 1:1'
export RABBITMQ_SCHEDULER_BIND_TYPE=u # nodes share processors here
export RABBITMQ_CONF_ENV_FILE="$PWD/rabbitmq-env.conf" RABBITMQ_CONFIG_FILE="$PWD/rabbitmq.conf"
export RABBITMQ_ADVANCED_CONFIG_FILE="$PWD/advanced.config" RABBITMQ_ENABLED_PLUGINS_FILE="$PWD/enabled_plugins"
export RABBITMQ_LOGS=- RABBITMQ_LOG_BASE="$PWD"
exec /usr/lib/rabbitmq/bin/rabbitmq-server # not the one on PATH, which switches to Debian's user
