package tool

import (
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// An answer is what a program says of itself.
type answer struct {
	product Product
	version string
	before  string // what it said first: warnings
}

// semver bounds the digits, so that each number fits an int.
const semver = `(?:\d{1,9}\.){2}\d{1,9}(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?`

var (
	wholeVersion  = regexp.MustCompile(`^` + semver + `$`)
	terraformLine = regexp.MustCompile(`(?m)^(Terraform|OpenTofu|OpenTF) v(` + semver + `)[ \t\r]*$`)
	pulumiLine    = regexp.MustCompile(`(?m)^()v?(` + semver + `)[ \t\r]*$`)
	object        = regexp.MustCompile(`(?m)^[ \t]*\{`)
)

// readTerraform reads what `version` printed: a line with the product, or JSON,
// which the user's TF_CLI_ARGS may ask for. JSON does not say the product (tofu
// writes terraform_version too), so there the program's name decides.
func readTerraform(name, out string) (answer, error) {
	if product, a, ok := readLine(terraformLine, out); ok {
		a.product = OpenTofu // OpenTF is its first name
		if product == "Terraform" {
			a.product = TerraformCLI
		}
		return a, nil
	}
	a, ok := readJSON(out)
	if !ok {
		return answer{}, errors.New("neither terraform's nor tofu's version is in what it answers: " + quote(out))
	}
	a.product = TerraformCLI
	if strings.Contains(name, "tofu") {
		a.product = OpenTofu
	}
	return a, nil
}

// readPulumi reads what `version` printed: the version alone, with a v or
// without, as it was built.
func readPulumi(_, out string) (answer, error) {
	_, a, ok := readLine(pulumiLine, out)
	if !ok {
		return answer{}, errors.New("no version of pulumi is in what it answers: " + quote(out))
	}
	a.product = PulumiCLI
	return a, nil
}

// readLine finds the first line that matches: a product's name and a version.
func readLine(re *regexp.Regexp, out string) (product string, a answer, ok bool) {
	m := re.FindStringSubmatchIndex(out)
	if m == nil {
		return "", answer{}, false
	}
	return out[m[2]:m[3]], answer{version: out[m[4]:m[5]], before: out[:m[0]]}, true
}

// readJSON finds the first object with a version; warnings may come before it.
func readJSON(out string) (answer, bool) {
	for _, at := range object.FindAllStringIndex(out, -1) {
		var v struct {
			Version string `json:"terraform_version"`
		}
		err := json.NewDecoder(strings.NewReader(out[at[0]:])).Decode(&v)
		if err == nil && wholeVersion.MatchString(v.Version) {
			return answer{version: v.Version, before: out[:at[0]]}, true
		}
	}
	return answer{}, false
}

// older tells whether a version comes before the least that will do. A
// pre-release counts as its release: 1.6.0-alpha3 has what 1.6 has.
func older(version, least string) bool { return compare(version, least) < 0 }

// compare orders versions by their three numbers.
func compare(a, b string) int { return slices.Compare(numbers(a), numbers(b)) }

func numbers(version string) []int {
	release, _, _ := strings.Cut(version, "-")
	release, _, _ = strings.Cut(release, "+")
	var out []int
	for s := range strings.SplitSeq(release, ".") {
		n, _ := strconv.Atoi(s) // digits, few enough: see semver
		out = append(out, n)
	}
	return out
}

// plain makes one short line of a program's words, without the frames drawn around them.
func plain(words string) string {
	s := strings.Join(strings.FieldsFunc(words, func(r rune) bool {
		return strings.ContainsRune(" \t\r\n╷│╵", r)
	}), " ")
	if len(s) > 500 {
		s = strings.ToValidUTF8(s[:500], "") + "..."
	}
	return s
}

func quote(out string) string { return strconv.Quote(plain(out)) }
