package remote

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
)

// hostKeys are the only keys that a host may prove itself with.
type hostKeys []ssh.PublicKey

func pinnedKeys(lines []string) (hostKeys, error) {
	if len(lines) == 0 {
		return nil, fmt.Errorf("%w: none is pinned", ErrHostKey)
	}
	var keys hostKeys
	for _, line := range lines {
		key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
		if err != nil {
			return nil, fmt.Errorf("reading the pinned host key %q: %w", line, err)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

func (k hostKeys) check(_ string, _ net.Addr, got ssh.PublicKey) error {
	for _, key := range k {
		if string(key.Marshal()) == string(got.Marshal()) {
			return nil
		}
	}
	return fmt.Errorf("%w: expected %s, got %s %s", ErrHostKey, k, got.Type(), ssh.FingerprintSHA256(got))
}

func (k hostKeys) String() string {
	var out []string
	for _, key := range k {
		out = append(out, key.Type()+" "+ssh.FingerprintSHA256(key))
	}
	return strings.Join(out, " or ")
}

// algorithms offers exactly the pinned types: a host would otherwise choose a
// key that nobody pinned.
func (k hostKeys) algorithms() []string {
	var out []string
	for _, key := range k {
		names := []string{key.Type()}
		if key.Type() == ssh.KeyAlgoRSA {
			names = []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256}
		}
		for _, n := range names {
			if !slices.Contains(out, n) {
				out = append(out, n)
			}
		}
	}
	return out
}

// explain tells that a host has no key of the pinned types, which the library
// says in terms of algorithms.
func (k hostKeys) explain(err error) error {
	var none *ssh.AlgorithmNegotiationError
	if !errors.As(err, &none) || none.What != "host key" {
		return err
	}
	return fmt.Errorf("%w: expected %s, the host has only %s", ErrHostKey, k, strings.Join(none.RequestedAlgorithms, ", "))
}
