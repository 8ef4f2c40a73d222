// Package provision turns bare hosts into Kafka brokers, controllers and load
// workers, and gives them back: the second stage. It knows nothing of where
// hosts come from, nor of what is measured.
//
// Prepare makes hosts ready, Start, Resize and Mend make a cluster on them, Stop
// and Wipe end it, Restore gives the hosts back.
//
// All that it does to a host is in the run's ledger, with the host's name as
// scope, before it is done. On hosts everything lies below /opt/krig/<short id>
// and /var/lib/krig/<short id>.
package provision
