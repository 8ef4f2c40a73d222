terraform {
  # Terraform 1.5 or OpenTofu 1.6: terraform_data, plantimestamp, and checks of
  # optional attributes. No provider is needed, so init needs no network.
  required_version = ">= 1.5"
}

locals {
  # The run directory: krig's own, or the one that is made here.
  run = var.run != "" ? var.run : one(terraform_data.run[*].output.dir)

  # What a host is made from. A change makes the host again.
  specs = { for name, h in var.hosts : name => {
    rig       = var.rig
    name      = name
    cpus      = h.cpus
    memory    = h.memory
    link_rate = h.link_rate
    disk      = h.disk
    remake    = h.remake
  } }
}

# When the module is applied by hand there is no run yet. Its directory is named
# once, with the time and an id of six letters, as krig names its own.
resource "terraform_data" "name" {
  count = var.run == "" ? 1 : 0
  input = "${abspath(var.runs)}/${var.rig}-${formatdate("YYYYMMDD'T'hhmmss'Z'", plantimestamp())}"

  lifecycle {
    ignore_changes = [input]
  }
}

# The run. The last thing that is destroyed removes what is left of it.
resource "terraform_data" "run" {
  count = var.run == "" ? 1 : 0
  input = {
    krig = var.krig
    dir  = "${terraform_data.name[0].output}-${substr(replace(terraform_data.name[0].id, "-", ""), 0, 6)}"
  }

  provisioner "local-exec" {
    when    = destroy
    command = "exec \"$KRIG\" lab-host clear --run \"$RUN\""
    environment = {
      KRIG = self.output.krig
      RUN  = self.output.dir
    }
  }
}

# Folder, network and key that the hosts share, and until when all of it stands.
# Another time puts that off and leaves the hosts alone.
resource "terraform_data" "ground" {
  count            = var.run == "" ? 1 : 0
  triggers_replace = [var.keep]

  provisioner "local-exec" {
    command = "exec \"$KRIG\" lab-host ground --run \"$RUN\" --keep \"$KEEP\""
    environment = {
      KRIG = var.krig
      RUN  = local.run
      KEEP = var.keep
    }
  }
}

resource "terraform_data" "host" {
  for_each         = local.specs
  triggers_replace = each.value

  # None of this makes a host again. The output is unknown until the host stands,
  # so that what depends on it is read after that.
  input = {
    krig   = var.krig
    run    = local.run
    name   = each.key
    record = "${local.run}/infra/lab/hosts/${each.key}.json"
  }

  depends_on = [terraform_data.ground]

  provisioner "local-exec" {
    command = "exec \"$KRIG\" lab-host create --run \"$KRIG_LAB_RUN\" --spec \"$SPEC\""
    environment = {
      KRIG         = var.krig
      KRIG_LAB_RUN = local.run
      SPEC         = jsonencode(each.value)
    }
  }

  provisioner "local-exec" {
    when    = destroy
    command = "exec \"$KRIG\" lab-host remove --run \"$KRIG_LAB_RUN\" --name \"$NAME\""
    environment = {
      KRIG         = self.output.krig
      KRIG_LAB_RUN = self.output.run
      NAME         = self.output.name
    }
  }
}
