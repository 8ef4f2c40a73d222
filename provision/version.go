package provision

import (
	"regexp"
	"strconv"
)

// version is a Kafka version.
type version struct{ major, minor, patch int }

var versionForm = regexp.MustCompile(`^(\d{1,3})\.(\d{1,3})\.(\d{1,3})$`)

func parseVersion(s string) (version, bool) {
	m := versionForm.FindStringSubmatch(s)
	if m == nil {
		return version{}, false
	}
	n := func(i int) int { v, _ := strconv.Atoi(m[i]); return v } // digits only, by the expression
	return version{n(1), n(2), n(3)}, true
}

// atLeast tells whether v is major.minor or later.
func (v version) atLeast(major, minor int) bool {
	return v.major > major || v.major == major && v.minor >= minor
}

// java is the oldest Java that runs brokers and tools of this version.
func (v version) java() int {
	if v.atLeast(4, 0) {
		return 17
	}
	return 8
}

var (
	javaForm = regexp.MustCompile(`version "([^"]+)"`)
	javaText = regexp.MustCompile(`^(?:1\.)?(\d{1,4})`)
)

// javaVersion reads what java -version prints: 17.0.15 is 17, 1.8.0_181 is 8.
// The major is 0 when it cannot be told.
func javaVersion(text string) (full string, major int) {
	m := javaForm.FindStringSubmatch(text)
	if m == nil {
		return "", 0
	}
	if d := javaText.FindStringSubmatch(m[1]); d != nil {
		major, _ = strconv.Atoi(d[1]) // digits only, by the expression
	}
	return m[1], major
}
