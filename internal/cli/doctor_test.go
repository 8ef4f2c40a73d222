package cli

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"krig/infra"
)

func TestDoctorTellsWarningsFromWhatIsMissing(t *testing.T) {
	gone := infra.Lack{What: "podman is not installed", Remedy: "apt-get install podman"}
	short := infra.Lack{What: "little memory is free", Remedy: "end what uses it", Warning: true}
	for name, c := range map[string]struct {
		lacks []infra.Lack
		want  string
		err   string
	}{
		"nothing": {nil, "ok  lab hosts (podman, namespaces, loop devices, shaping)  \n", ""},
		"a warning": {[]infra.Lack{short},
			"ok       lab hosts (podman, namespaces, loop devices, shaping)  \nwarning  little memory is free                                  end what uses it\n", ""},
		"both": {[]infra.Lack{short, gone},
			"warning  little memory is free    end what uses it\nmissing  podman is not installed  apt-get install podman\n", "this machine lacks 1 thing"},
	} {
		var out bytes.Buffer
		a := &app{IO: IO{Out: &out}}
		said := ""
		if err := a.tell(lacks(c.lacks), false); err != nil {
			said = err.Error()
		}
		if out.String() != c.want || said != c.err {
			t.Errorf("%s: %q, error %q, want %q, error %q", name, out.String(), said, c.want, c.err)
		}
		out.Reset()
		_ = a.tell(lacks(c.lacks), true)
		var back []finding
		if err := json.Unmarshal(out.Bytes(), &back); err != nil || !reflect.DeepEqual(back, lacks(c.lacks)) {
			t.Errorf("%s as JSON: %+v, %v", name, back, err)
		}
	}
}
