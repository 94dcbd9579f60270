package signature

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"slices"
	"strings"
	"time"
)

const (
	// maxSignatures is how many signatures of a digest are looked at in one
	// store. CVO tries nine of an HTTP store (library-go
	// pkg/verify/store/sigstore).
	maxSignatures = 9
	// maxSignatureBytes bounds one signature as it comes, and what it
	// decompresses to. Real ones are below 1 KiB.
	maxSignatureBytes = 64 << 10
	// maxDetails bounds Error.Details.
	maxDetails = 20
)

// search is one look through the stores.
type search struct {
	digest   string
	now      time.Time
	missing  []Keyring // not satisfied yet
	signers  []string
	warnings []string
	asked    []string
	attempts []attempt
}

// attempt is what came of one signature, or of one store that gave none.
type attempt struct {
	where   string
	keyring string // empty: no keyring could have accepted it
	err     *Error
}

// ask looks at the signatures in one store until the keyrings are satisfied.
func (s *search) ask(ctx context.Context, store Store) {
	s.asked = append(s.asked, store.String())
	for n := 1; n <= maxSignatures && len(s.missing) > 0; n++ {
		data, err := store.Signature(ctx, s.digest, n)
		if errors.Is(err, fs.ErrNotExist) {
			return
		}
		where := fmt.Sprintf("signature-%d of %s", n, store)
		if err == nil && len(data) > maxSignatureBytes {
			err = errTooLarge
		}
		if err == nil {
			s.judge(where, data)
			continue
		}
		s.attempts = append(s.attempts, attempt{where: where, err: storeError(err)})
		// One oversized signature says nothing about the next one; a store that
		// did not answer is not asked again.
		if !errors.Is(err, errTooLarge) {
			return
		}
	}
}

// judge holds one signature against the keyrings that are still missing.
func (s *search) judge(where string, data []byte) {
	m, err := parseMessage(data)
	if err != nil {
		s.attempts = append(s.attempts, attempt{where: where, err: err})
		return
	}
	s.missing = slices.DeleteFunc(s.missing, func(k Keyring) bool {
		signer, err := k.check(m, s.now)
		if err == nil {
			err = checkClaim(m.body, s.digest)
		}
		if err != nil {
			s.attempts = append(s.attempts, attempt{where: where, keyring: k.name, err: err})
			return false
		}
		s.signers = append(s.signers, signer.name)
		if signer.warning != "" {
			s.warnings = append(s.warnings, signer.warning)
		}
		return true
	})
}

// failure sums up why a keyring is not satisfied: the most telling of what went
// wrong for it, then everything else as details.
func (s *search) failure() *Error {
	attempts := slices.DeleteFunc(slices.Clone(s.attempts), func(a attempt) bool {
		return a.keyring != "" && a.keyring != s.missing[0].name
	})
	if len(attempts) == 0 {
		return newError(reasonNoSignature, "no signature of %s was found in %s", s.digest, strings.Join(s.asked, ", "))
	}
	worst := slices.MinFunc(attempts, func(a, b attempt) int { return rank(a.err.Reason) - rank(b.err.Reason) })
	e := *worst.err
	e.Message = fmt.Sprintf("no signature of %s satisfies keyring %q: %s: %s", s.digest, s.missing[0].name, worst.where, e.Message)
	for _, a := range attempts[:min(len(attempts), maxDetails)] {
		e.Details = append(e.Details, fmt.Sprintf("%s: %s: %s", a.where, a.err.Reason, a.err.Message))
	}
	return &e
}

// rank orders reasons by what they tell, the most telling first. What a trusted
// key did comes first. What could not be decided comes before what anybody may
// have put there, since the good signature may be the one that was not seen.
func rank(reason string) int {
	return slices.Index([]string{
		reasonKeyRevoked, reasonInvalidSignature, reasonWrongDigest, reasonInvalidClaim, reasonSignatureExpired,
		reasonNotYetValid, reasonKeyExpired, reasonWeakDigest,
		reasonUnsupportedSignature, reasonTimeout, reasonStoreUnavailable,
		reasonUnknownKey, reasonMalformedSignature, reasonTooLarge,
	}, reason)
}

// storeError says why a store gave no signature.
func storeError(err error) *Error {
	var timeout net.Error
	switch {
	case errors.Is(err, errTooLarge):
		return newError(reasonTooLarge, "larger than %d bytes", maxSignatureBytes)
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return newError(reasonTimeout, "no answer in time: %v", err)
	}
	return newError(reasonStoreUnavailable, "could not be read: %v", err)
}
