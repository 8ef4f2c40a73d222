package reports

import (
	"os"
	"testing"
)

func TestTry(t *testing.T) {
	run := disks(3).write(t)
	r, err := Write(run)
	if err != nil {
		t.Fatal(err)
	}
	Text(os.Stdout, run, r)
	b, _ := os.ReadFile(run.Path("report.html"))
	os.WriteFile("/tmp/rep_x/report.html", b, 0o644)
}
