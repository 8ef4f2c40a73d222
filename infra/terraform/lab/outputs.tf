output "run" {
  description = "The run directory. krig ssh, krig list and krig down take it."
  value       = local.run
}

output "hosts" {
  description = "The hosts that stand, by name, with: name, provider, address and internal (how krig and how the other hosts reach it), port, user, key_file (relative to the run directory), host_key (in authorized_keys form), arch, cpus (0 is not limited), memory in bytes, link_rate in bits a second (0 is not shaped), disks (id, device, size in bytes, profile, write, read, iops)."
  value = { for name, h in terraform_data.host : name => {
    for made in [jsondecode(file(h.output.record)).host] : name => {
      name      = made.name
      provider  = "lab"
      address   = made.ssh.address
      internal  = made.internal
      port      = made.ssh.port
      user      = made.ssh.user
      key_file  = made.ssh.key_file
      host_key  = made.ssh.host_key
      arch      = made.arch
      cpus      = made.cpus
      memory    = made.memory
      link_rate = made.link_rate
      disks     = made.disks
    }
  }[name] if fileexists(h.output.record) }
}
