# Returns when a process has ended. Argument: its id.
while read -r _ _ state _ </proc/"$1"/stat && [ "$state" != Z ]; do sleep 0.5; done 2>/dev/null
exit 0
