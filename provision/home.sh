# Makes krig's own directory for the login. Arguments: directory, user.
set -e
dir=$1 user=$2
umask 022
mkdir -p "$dir/nodes" "$dir/logs" "$dir/dist" "$dir/data"
[ -z "$user" ] || chown "$user" "$dir" "$dir/nodes" "$dir/dist"
