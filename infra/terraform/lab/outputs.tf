locals {
  # What krig wrote down of each host that stands. A host that was to be removed
  # or could not be made has no record.
  made = { for name, h in terraform_data.host : name => jsondecode(file(h.output.record)).host if fileexists(h.output.record) }

  roles = { b = "broker", c = "controller" }
}

output "hosts" {
  description = "The hosts that stand, by name, each with name, role, address and internal (how krig and how the other hosts reach it), port, user, host_key (a list, in authorized_keys form) and disks (device on the host, size in bytes, id: the name of its file on this machine). It is what krig's provider module asks of any module."
  value = { for name, h in local.made : name => {
    name     = name
    role     = coalesce(var.hosts[name].role, lookup(local.roles, substr(name, 0, 1), "worker"))
    address  = h.ssh.address
    internal = h.internal
    port     = h.ssh.port
    user     = h.ssh.user
    host_key = h.ssh.host_key
    disks    = [for d in h.disks : { device = d.device, size = d.size, id = basename(d.id) }]
  } }
}

output "run" {
  description = "The run directory. krig ssh, krig list and krig down take it."
  value       = local.run
}

output "key_file" {
  description = "The private key that logs in to the hosts."
  value       = "${local.run}/infra/lab/client_key"
}
