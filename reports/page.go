package reports

import "io"

func (a *analysis) html(w io.Writer) error { _, err := io.WriteString(w, "<!doctype html>\n"); return err }
