# The virtual machines of the lab as an inventory, which the Vagrantfile writes once they are all up.
#
# Each machine's fingerprint, and the public key that the first machine created, are read on the machine itself,
# through Vagrant's own connection; the inventory names the fingerprints, so no host key is accepted unverified.
# `machines` are Vagrant's (the class Vagrant::Machine): they have a name and `communicate`.
module Lab
  CONTROL = "192.168.56.".freeze # within the range that VirtualBox allows for host-only networks
  EXPERIMENT = "10.10.1.".freeze
  FIRST = 10 # last byte of the first machine's addresses
  MTU = 1600 # of the experiment network: a full-sized packet plus tunnel headers
  USER = "vagrant".freeze
  HOST_KEY = "/etc/ssh/ssh_host_ed25519_key.pub".freeze
  OWN_KEY = "/home/#{USER}/.ssh/id_ed25519.pub".freeze

  module_function

  def name(number)
    "h#{number}"
  end

  def control(number)
    "#{CONTROL}#{FIRST + number}"
  end

  def experiment(number)
    "#{EXPERIMENT}#{FIRST + number}"
  end

  # Let the first machine log in to all of them; returns the inventory's text.
  def join(machines)
    key = output(machines.first, "cat #{OWN_KEY}")[/\Assh-ed25519 [A-Za-z0-9+\/=]+/]
    raise "#{machines.first.name} has no key of its own: vagrant provision #{machines.first.name}" unless key

    machines.each { |machine| output(machine, allow(key)) }
    inventory(machines.map { |machine| fingerprint(output(machine, "ssh-keygen -lf #{HOST_KEY}")) })
  end

  # Return a command that adds a public key to the authorized keys unless it is there.
  def allow(key)
    "grep -qF '#{key}' ~/.ssh/authorized_keys || echo '#{key}' >>~/.ssh/authorized_keys"
  end

  def fingerprint(text)
    text[/SHA256:[A-Za-z0-9+\/]{43}/] or raise "no fingerprint in #{text.inspect}"
  end

  def inventory(fingerprints)
    lines = fingerprints.each_with_index.map do |fingerprint, number|
      "  - {name: #{name(number)}, control: #{control(number)}, experiment: #{experiment(number)}," \
        " host_key: \"#{fingerprint}\"}"
    end
    <<~YAML
      # Written by the Vagrantfile: the virtual machines of this lab.
      inventory: vagrant
      user: #{USER}
      machines:
      #{lines.join("\n")}
    YAML
  end

  # Run a command on a machine; returns its standard output.
  def output(machine, command)
    text = +""
    machine.communicate.execute(command) { |stream, data| text << data if stream == :stdout }
    text
  end
end
