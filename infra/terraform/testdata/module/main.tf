# Things whose making takes as long, and ends as, a variable says.
terraform {
  required_version = ">= 1.5"
}

variable "dir" {
  type = string
}

variable "things" {
  type = map(string) # a shell command for each, run in dir
}

resource "terraform_data" "thing" {
  for_each = var.things
  input    = { dir = var.dir, name = each.key }

  provisioner "local-exec" {
    command     = each.value
    working_dir = var.dir
    environment = { NAME = each.key }
  }
  provisioner "local-exec" {
    when        = destroy
    command     = "rm -f \"$NAME\""
    working_dir = self.output.dir
    environment = { NAME = self.output.name }
  }
}

output "hosts" {
  value = keys(terraform_data.thing)
}
