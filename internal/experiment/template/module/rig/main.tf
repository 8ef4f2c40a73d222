# A module for krig to start from. As it stands it makes nothing: it gives the
# machines of the variable below. Put your resources in their place.

terraform {
  required_version = ">= 1.5"
}

variable "krig_tags" {
  description = "What everything that is made must carry, so that it is known whose it is. krig passes it always."
  type        = map(string)
}

variable "krig_hosts" {
  description = "How many hosts of each pool the experiment wants: brokers, controllers, workers. krig passes it when it is declared."
  type        = map(number)
}

variable "prefix" {
  description = "One of your own variables: the experiment passes its value."
  type        = string
  default     = "krig"
}

variable "machines" {
  description = "Addresses and host keys (as in /etc/ssh/ssh_host_ed25519_key.pub) of machines, by role."
  type        = map(list(object({ address = string, host_key = string })))
  default     = {}
}

# With resources of your own it looks like this. The host's key is made here and
# put onto the machine, so that krig knows it before the first login.
#
#   resource "tls_private_key" "host" {
#     count     = var.krig_hosts.brokers
#     algorithm = "ED25519"
#   }
#
#   resource "aws_instance" "broker" {
#     count     = var.krig_hosts.brokers
#     tags      = merge(var.krig_tags, { Name = "${var.prefix}-b${count.index + 1}" })
#     user_data = <<-EOT
#       #cloud-config
#       ssh_keys:
#         ed25519_private: |
#           ${indent(4, tls_private_key.host[count.index].private_key_openssh)}
#         ed25519_public: ${tls_private_key.host[count.index].public_key_openssh}
#     EOT
#     ...
#   }

output "hosts" {
  description = "The hosts, as krig reads them."
  value = flatten([for role in ["broker", "controller", "worker"] : [
    for i, m in slice(lookup(var.machines, role, []), 0, min(lookup(var.krig_hosts, "${role}s", 0), length(lookup(var.machines, role, [])))) : {
      name     = "${var.prefix}-${role}-${i + 1}"
      role     = role
      address  = m.address
      user     = "root"
      host_key = m.host_key
      # internal = the address for Kafka's traffic, where it is another
      # port     = 22
      # disks    = [{ device = "/dev/nvme1n1" }]
      # jump     = { address = ..., user = ..., host_key = ... }
      # id, type, zone = for reports
    }
  ]])
}
