# Makes the key that the module puts onto its hosts, and that the experiment names.
set -e
key=$LAB/infra/lab/client_key
mkdir -p "${key%/*}"
rm -f id id.pub "$key"
ssh-keygen -q -t ed25519 -N "" -f id
cp -p id "$key"
