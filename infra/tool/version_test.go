package tool

import (
	"os"
	"strings"
	"testing"
)

// captured are the six outputs of testdata, by the command that printed them.
func captured(t testing.TB) (names, outs []string) {
	t.Helper()
	data, err := os.ReadFile("testdata/versions.txt")
	if err != nil {
		t.Fatal(err)
	}
	for c := range strings.SplitSeq(string(data), "---\n") {
		command, out, _ := strings.Cut(c, "\n")
		names = append(names, strings.Fields(command)[1])
		outs = append(outs, out)
	}
	return names, outs
}

func TestReadTerraform(t *testing.T) {
	t.Parallel()
	warning := "There are some problems with the CLI configuration: Warning: Unable to open CLI configuration file"
	want := []answer{
		{TerraformCLI, "1.5.7", ""}, // and not the one that its hint tells of
		{OpenTofu, "1.8.2", ""},
		{OpenTofu, "1.6.0-alpha3", ""},
		{OpenTofu, "1.6.0-dev", ""},
		{OpenTofu, "1.8.2", ""},
		{TerraformCLI, "1.11.4", warning},
	}
	names, outs := captured(t)
	if len(outs) != len(want) {
		t.Fatalf("%d outputs, want %d", len(outs), len(want))
	}
	for i, out := range outs {
		got, err := readTerraform(names[i], out)
		got.before = plain(got.before)
		if err != nil || got != want[i] {
			t.Errorf("output %d: %+v, %v; want %+v", i+1, got, err, want[i])
		}
	}
}

func TestReadTerraformAmongWords(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, out, want string }{
		{"tofu", "\nWarning: no file\n\nOpenTofu v1.12.6\non linux_amd64\n", "opentofu 1.12.6"},
		{"terraform", "OpenTofu v1.9.0\r\n", "opentofu 1.9.0"}, // a link by the other's name
		{"tf", "Terraform v1.13.0-rc1+build.5\n", "terraform 1.13.0-rc1+build.5"},
		{"terraform", "{broken\n{\"a\":1}\n  {\"terraform_version\":\"1.6.0\"}", "terraform 1.6.0"},
	} {
		a, err := readTerraform(c.name, c.out)
		if got := string(a.product) + " " + a.version; err != nil || got != c.want {
			t.Errorf("%q: %s, %v; want %s", c.out, got, err, c.want)
		}
	}
}

func TestReadNoVersion(t *testing.T) {
	t.Parallel()
	for _, out := range []string{
		"", "tofu is not installed", "Terraform v1.5", "Terraform 1.5.7", "is Terraform v1.5.7",
		`{"terraform_version": "1.5"}`, `{"terraform_version": 1}`, "Terraform v1.99999999999.0", "1.2.3",
	} {
		if a, err := readTerraform("terraform", out); err == nil {
			t.Errorf("%q: read as %+v", out, a)
		}
	}
	if a, err := readPulumi("pulumi", "OpenTofu v1.8.2"); err == nil {
		t.Errorf("tofu read as pulumi: %+v", a)
	}
}

func TestReadPulumi(t *testing.T) {
	t.Parallel()
	for out, want := range map[string]string{
		"3.276.0\n":               "3.276.0",
		"v3.276.0\n":              "3.276.0",
		"v3.130.0-alpha.17+dirty": "3.130.0-alpha.17+dirty",
		"warning: x\nv3.200.1\n":  "3.200.1",
	} {
		a, err := readPulumi("pulumi", out)
		if err != nil || a.version != want || a.product != PulumiCLI {
			t.Errorf("%q: %+v, %v; want %s", out, a, err, want)
		}
	}
}

func TestOlder(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		version, least string
		want           bool
	}{
		{"1.4.9", "1.5.0", true},
		{"1.5.0", "1.5.0", false},
		{"1.10.2", "1.5.0", false},
		{"0.15.5", "1.5.0", true},
		{"1.6.0-alpha3", "1.6.0", false},
		{"1.5.9+x-y", "1.6.0", true},
		{"3.9.0", "3.130.0", true},
	} {
		if got := older(c.version, c.least); got != c.want {
			t.Errorf("older(%s, %s) = %v", c.version, c.least, got)
		}
	}
}

// FuzzVersion: what is read is a version whatever was printed, of a product
// that was asked for, and what came before it is a beginning of the output.
func FuzzVersion(f *testing.F) {
	names, outs := captured(f)
	for i, out := range outs {
		f.Add(names[i], out)
	}
	f.Add("pulumi", "v3.276.0\n")
	f.Fuzz(func(t *testing.T, name, out string) {
		for _, s := range []search{terraforms(), pulumis()} {
			a, err := s.read(name, out)
			if err != nil {
				continue
			}
			if s.least[a.product] == "" || !wholeVersion.MatchString(a.version) || !strings.HasPrefix(out, a.before) {
				t.Errorf("%q, %q: read as %+v", name, out, a)
			}
			if n := numbers(a.version); len(n) != 3 || min(n[0], n[1], n[2]) < 0 {
				t.Errorf("%s: numbers %v", a.version, n)
			}
		}
	})
}
