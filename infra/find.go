package infra

import (
	"context"
	"time"

	"krig/infra/lab"
)

// Find asks this machine itself what carries the label; it needs no run directory.
func Find(ctx context.Context, l Label) ([]Leftover, error) {
	things, err := lab.Find(ctx, l.Run, l.Scope)
	now := time.Now()
	out := make([]Leftover, len(things))
	for i, t := range things {
		out[i] = Leftover{
			Kind: t.Kind, Ref: t.Ref, Run: t.Label.Run, Owner: t.Label.Owner, Hold: t.Label.Hold,
			Expiry: t.Label.Expiry, Alive: t.Label.Alive(), May: t.Label.Removable(now), scope: t.Label.Scope,
		}
	}
	return out, err
}

// Remove removes leftovers, in the order that they need.
func Remove(ctx context.Context, found []Leftover) error {
	return lab.Remove(ctx, things(found))
}

func things(found []Leftover) []lab.Thing {
	out := make([]lab.Thing, len(found))
	for i, f := range found {
		out[i] = lab.Thing{Kind: f.Kind, Ref: f.Ref,
			Label: lab.Label{Run: f.Run, Owner: f.Owner, Hold: f.Hold, Expiry: f.Expiry, Scope: f.scope}}
	}
	return out
}
