package kafka

import (
	"math/big"
	"strconv"
	"strings"
)

// SameMeaning compares two values of a setting as Kafka reads them: numbers by
// value and exactly, the words true and false in any case, lists by their elements.
func SameMeaning(a, b string) bool {
	a, b = strings.TrimSpace(a), strings.TrimSpace(b)
	if a == b {
		return true
	}
	if x, ok := Number(a); ok {
		y, ok := Number(b)
		return ok && x.Cmp(y) == 0
	}
	if isBool(a) && isBool(b) {
		return strings.EqualFold(a, b)
	}
	if strings.Contains(a, ",") || strings.Contains(b, ",") {
		return sameList(strings.Split(a, ","), strings.Split(b, ","))
	}
	return false
}

// What bounds a number that is read: an exponent could otherwise ask for any
// amount of memory. Java's largest double is below 1e309.
const (
	longestNumber   = 40
	largestExponent = 400
)

// Number is the exact value of a setting that is a decimal number, such as
// 0.0005, which the admin API gives as 5.0E-4.
func Number(s string) (*big.Rat, bool) {
	if len(s) > longestNumber || strings.ContainsAny(s, "pPxX/_") {
		return nil, false
	}
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		e, err := strconv.Atoi(s[i+1:])
		if err != nil || e > largestExponent || e < -largestExponent {
			return nil, false
		}
	}
	return new(big.Rat).SetString(s)
}

func isBool(s string) bool { return strings.EqualFold(s, "true") || strings.EqualFold(s, "false") }

func sameList(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !SameMeaning(a[i], b[i]) {
			return false
		}
	}
	return true
}
