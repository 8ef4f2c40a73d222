package provision

import (
	"regexp"
	"strconv"

	"krig/internal/experiment"
)

// javaFor is the oldest Java that runs brokers and tools of a Kafka version,
// which was checked to be one.
func javaFor(version string) int {
	if v, _ := experiment.ParseVersion(version); v.AtLeast(4, 0) {
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
