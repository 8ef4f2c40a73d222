package experiment

import (
	"regexp"
	"strconv"
)

// Version is a version of Kafka: three numbers, such as 4.4.0.
type Version struct{ Major, Minor, Patch int }

var versionPattern = regexp.MustCompile(`^([0-9]{1,4})\.([0-9]{1,4})\.([0-9]{1,4})$`)

// ParseVersion reads a version of Kafka; false where s is none.
func ParseVersion(s string) (Version, bool) {
	m := versionPattern.FindStringSubmatch(s)
	if m == nil {
		return Version{}, false
	}
	n := func(i int) int { v, _ := strconv.Atoi(m[i]); return v } // digits only, by the pattern
	return Version{n(1), n(2), n(3)}, true
}

// AtLeast tells whether v is major.minor or later.
func (v Version) AtLeast(major, minor int) bool {
	return v.Major > major || v.Major == major && v.Minor >= minor
}
