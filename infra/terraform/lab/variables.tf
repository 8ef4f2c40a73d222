variable "hosts" {
  description = "The hosts by name (b1, w1, ...). memory in bytes, cpus in processors, link_rate in bits a second in each direction; 0 is not limited. disk is a data disk with its size in bytes; write and read in bytes a second and iops in operations a second slow it, 0 does not. role is broker, controller or worker, else told from the name's first letter; krig's provider module goes by it, and a change of it changes no host. Raise remake to make a host again that is as it shall be."
  type = map(object({
    role      = optional(string)
    cpus      = optional(number, 0)
    memory    = optional(number, 2147483648)
    link_rate = optional(number, 0)
    disk = optional(object({
      size    = number
      profile = optional(string, "none")
      write   = optional(number, 0)
      read    = optional(number, 0)
      iops    = optional(number, 0)
    }), { size = 0 })
    remake = optional(number, 0)
  }))
  nullable = false

  validation {
    condition     = alltrue([for name, _ in var.hosts : can(regex("^[a-z][a-z0-9]{0,30}$", name))])
    error_message = "A host's name is a small letter and at most 30 small letters and digits."
  }

  validation {
    condition     = alltrue(flatten([for h in values(var.hosts) : [for n in [h.memory, h.link_rate, h.disk.size, h.disk.write, h.disk.read, h.disk.iops, h.remake] : n >= 0 && floor(n) == n]]))
    error_message = "memory, link_rate, remake and all of disk are whole numbers, 0 or more."
  }

  validation {
    condition     = alltrue([for h in values(var.hosts) : contains(["broker", "controller", "worker"], coalesce(h.role, "worker"))])
    error_message = "role is broker, controller or worker."
  }

  validation {
    condition     = alltrue([for h in values(var.hosts) : h.cpus >= 0])
    error_message = "cpus is 0 (not limited) or more."
  }

  validation {
    condition     = alltrue([for h in values(var.hosts) : contains(["", "none", "ssd", "hdd", "custom"], h.disk.profile)])
    error_message = "disk.profile is none, ssd, hdd or custom. It only names what write, read and iops ask for."
  }
}

variable "rig" {
  description = "Name of the rig that the hosts belong to."
  type        = string
  default     = "lab"

  validation {
    condition     = can(regex("^[A-Za-z0-9_-]+$", var.rig))
    error_message = "A rig's name has letters, digits, - and _ alone."
  }
}

variable "krig" {
  description = "The krig program that makes the hosts: a path, or a name on PATH."
  type        = string
  default     = "krig"

  validation {
    condition     = var.krig != ""
    error_message = "The krig program must be named."
  }
}

variable "run" {
  description = "An existing run directory whose lab is open. krig sets it; by hand leave it empty: a run directory is made below runs then."
  type        = string
  default     = ""

  validation {
    condition     = var.run == "" || startswith(var.run, "/")
    error_message = "run is an absolute path, or empty."
  }
}

variable "runs" {
  description = "Where the run directory is made when run is empty. It counts when the run begins; a later change does not move it."
  type        = string
  default     = "runs"
}

variable "keep" {
  description = "How long the hosts stand at least, when run is empty: from then on krig gc may remove them. A change counts from its apply."
  type        = string
  default     = "24h"

  validation {
    condition     = can(regex("^([0-9]+h)?([0-9]+m)?([0-9]+s)?$", var.keep)) && can(regex("[1-9]", var.keep))
    error_message = "keep is a time such as 24h or 1h30m."
  }
}
