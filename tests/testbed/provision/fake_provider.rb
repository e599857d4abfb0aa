# A provider of virtual machines that are none, for Vagrant: everything that is done on one goes into $FAKE_LOG.
# So the whole of a Vagrantfile runs, its machines, provisioners and triggers, on a computer without virtualisation.
module Fake
  class Plugin < Vagrant.plugin("2")
    name "fake"
    provider("fake", box_optional: true, defaultable: true, priority: 99) { Provider }
    communicator("fake") { Communicator }
    synced_folder("fake", 100) { Folder }
  end

  class Folder < Vagrant.plugin("2", :synced_folder)
    def usable?(_machine, _raise_error = false) = true
  end

  class Provider < Vagrant.plugin("2", :provider)
    def initialize(machine) = @machine = machine

    def action(name)
      return unless name == :up

      Vagrant::Action::Builder.new.tap do |builder|
        builder.use Vagrant::Action::Builtin::Provision
        builder.use Vagrant::Action::Builtin::SyncedFolders if ENV.key?("GUEST")
      end
    end

    def state = Vagrant::MachineState.new(:running, "running", "running")

    def ssh_info = { host: "192.0.2.1", port: 22, username: "vagrant", private_key_path: [] }
  end

  class Communicator < Vagrant.plugin("2", :communicator)
    def self.match?(_machine) = true

    def initialize(machine) = @machine = machine

    def ready? = true

    def wait_for_ready(_seconds) = true

    def test(*) = true

    def execute(command, **)
      log("execute #{command}")
      yield :stdout, answer(command) if block_given?
      0
    end
    alias sudo execute

    def upload(from, to) = log("upload #{to}: #{File.read(from)}")

    private

    def log(what) = File.open(ENV.fetch("FAKE_LOG"), "a") { |file| file.puts("#{@machine.name} #{what}") }

    def answer(command)
      case command
      when /^cat .*id_ed25519.pub/ then ENV.fetch("FAKE_KEY", "ssh-ed25519 AAAAkey#{@machine.name} lab\n")
      when /^ssh-keygen -lf/ then "256 SHA256:#{@machine.name.to_s[-1] * 43} root@#{@machine.name} (ED25519)\n"
      else ""
      end
    end
  end
end

Vagrant.configure("2") { |config| config.vm.communicator = "fake" }
