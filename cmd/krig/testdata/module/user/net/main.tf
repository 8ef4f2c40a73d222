terraform {
  required_version = ">= 1.5"
}

variable "krig_tags" {
  type = map(string)
}

variable "krig_hosts" {
  type = map(number)
}

variable "token" {
  type      = string
  sensitive = true
}

variable "lab" {
  type = string
}

variable "forget" {
  type = bool
}

locals {
  # The hosts, by their names in the lab and out of it.
  hosts = merge(
    { for i in range(var.krig_hosts.brokers) : "k${i + 1}" => { name = "kafka-${i + 1}", role = "broker", disk = 1073741824 } },
    { for i in range(var.krig_hosts.workers) : "l${i + 1}" => { name = "load-${i + 1}", role = "worker", disk = 0 } },
  )
}

resource "terraform_data" "ground" {
  input = { run = var.lab, tag = var.krig_tags["krig-run"] }

  lifecycle {
    ignore_changes = [input]
  }

  provisioner "local-exec" {
    command     = "exec krig lab-host ground --run \"$KRIG_LAB_RUN\" --keep 1h"
    environment = { KRIG_LAB_RUN = self.input.run }
  }

  provisioner "local-exec" {
    when        = destroy
    command     = "exec krig lab-host clear --run \"$RUN\""
    environment = { RUN = self.output.run }
  }
}

resource "terraform_data" "host" {
  for_each = local.hosts
  input = {
    run    = terraform_data.ground.output.run
    name   = each.key
    record = "${terraform_data.ground.output.run}/infra/lab/hosts/${each.key}.json"
  }

  provisioner "local-exec" {
    command = "exec krig lab-host create --run \"$KRIG_LAB_RUN\" --spec \"$SPEC\""
    environment = {
      KRIG_LAB_RUN = self.input.run
      TOKEN        = var.token
      SPEC         = jsonencode({ rig = "own", name = each.key, memory = 2147483648, disk = { size = each.value.disk, profile = "none" } })
    }
  }

  provisioner "local-exec" {
    when    = destroy
    command = "exec krig lab-host remove --run \"$KRIG_LAB_RUN\" --name \"$NAME\""
    environment = {
      KRIG_LAB_RUN = self.output.run
      NAME         = self.output.name
    }
  }
}

output "hosts" {
  value = [for key in sort(keys(local.hosts)) : {
    for made in [jsondecode(file(terraform_data.host[key].output.record)).host] : "host" => {
      name     = local.hosts[key].name
      role     = local.hosts[key].role
      address  = made.ssh.address
      internal = made.internal
      user     = made.ssh.user
      host_key = var.forget ? null : made.ssh.host_key
      disks    = [for d in made.disks : { device = d.device }]
    }
  }["host"]]
}
