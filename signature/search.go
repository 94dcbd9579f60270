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
	// pkg/verify/store/sigstore), and all that ConfigMaps have
	// (pkg/verify/store/configmap).
	maxSignatures          = 9
	maxConfigMapSignatures = 100
	// maxSignatureBytes bounds one signature as it comes, and what it
	// decompresses to. Real ones are below 1 KiB.
	maxSignatureBytes = 64 << 10
	// maxDetails bounds Error.Details.
	maxDetails = 20
)

// search is one look through the stores.
type search struct {
	digest     string
	now        time.Time
	missing    []Keyring // not satisfied yet
	signers    []string
	identities []string
	warnings   []string
	cvo        *bool // whether CVO accepts for the keyrings that are satisfied
	asked      []string
	attempts   []attempt
}

// attempt is what came of one signature, or of one store that gave none.
type attempt struct {
	where   string
	keyring string // empty: no keyring could have accepted it
	err     *Error
}

// askInTime asks a store, and leaves to those behind it their share of the
// time: left counts them all.
func (s *search) askInTime(ctx context.Context, store Store, left int) {
	if deadline, ok := ctx.Deadline(); ok {
		limited, cancel := context.WithTimeout(ctx, time.Until(deadline)/time.Duration(left))
		defer cancel()
		ctx = limited
	}
	s.ask(ctx, store)
}

// ask looks at the signatures in one store until the keyrings are satisfied.
func (s *search) ask(ctx context.Context, store Store) {
	s.asked = append(s.asked, store.String())
	before := len(s.attempts)
	for n := 1; len(s.missing) > 0; n++ {
		data, err := store.Signature(ctx, s.digest, n)
		if errors.Is(err, fs.ErrNotExist) {
			return
		}
		if n > limit(store) {
			s.tooMany(store, s.attempts[before:])
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

// tooMany is recorded for a store that has more signatures than count. A server
// that has the same page for everything has none.
func (s *search) tooMany(store Store, seen []attempt) {
	if slices.ContainsFunc(seen, func(a attempt) bool { return a.keyring != "" }) {
		s.attempts = append(s.attempts, attempt{where: store.String(), err: newError(reasonTooManySignatures,
			"it has more than %d signatures of this digest, of which only the first %d count", limit(store), limit(store))})
	}
}

// limit is how many signatures of a store count.
func limit(store Store) int {
	if _, ok := store.(*configMapStore); ok {
		return maxConfigMapSignatures
	}
	return maxSignatures
}

// judge holds one signature against the keyrings that are still missing.
func (s *search) judge(where string, data []byte) {
	m, err := parseMessage(data)
	if err != nil {
		s.attempts = append(s.attempts, attempt{where: where, err: err})
		return
	}
	identity, unclaimed := readClaim(m.body, s.digest)
	s.missing = slices.DeleteFunc(s.missing, func(k Keyring) bool {
		signer, err := k.check(m, s.now)
		if err == nil && unclaimed == nil {
			s.accept(signer, identity)
			return true
		}
		a := attempt{where: where, keyring: k.name, err: err}
		switch {
		case err == nil:
			refused := *unclaimed
			refused.cvo = both(refused.cvo, signer.cvo)
			a.err = &refused
		case unclaimed != nil:
			err.cvo = both(err.cvo, unclaimed.cvo)
		}
		s.attempts = append(s.attempts, a)
		return false
	})
}

func (s *search) accept(signer signer, identity string) {
	s.signers = append(s.signers, signer.name)
	s.identities = append(s.identities, identity)
	s.cvo = both(s.cvo, signer.cvo)
	if signer.warning != "" {
		s.warnings = append(s.warnings, signer.warning)
	}
}

// failure sums up why a keyring is not satisfied: the most telling of what went
// wrong for it, then everything else as details.
func (s *search) failure() *Error {
	attempts := s.of(s.missing[0])
	if len(attempts) == 0 {
		return newError(reasonNoSignature, "no signature of %s was found in %s", s.digest, strings.Join(s.asked, ", "))
	}
	worst := slices.MinFunc(attempts, func(a, b attempt) int { return rank(a.err.Reason) - rank(b.err.Reason) })
	e := *worst.err
	e.Message = fmt.Sprintf("no signature of %s satisfies keyring %q: %s: %s", s.digest, s.missing[0].name, worst.where, e.Message)
	for _, a := range attempts[:min(len(attempts), maxDetails)] {
		e.Details = append(e.Details, fmt.Sprintf("%s: %s: %s", a.where, a.err.Reason, a.err.Message))
	}
	e.cvo = s.acceptedByCVO()
	return &e
}

// of are the attempts that could have satisfied a keyring.
func (s *search) of(keyring Keyring) []attempt {
	return slices.DeleteFunc(slices.Clone(s.attempts), func(a attempt) bool {
		return a.keyring != "" && a.keyring != keyring.name
	})
}

// acceptedByCVO is what CVO makes of it: it wants one good signature for each
// keyring.
func (s *search) acceptedByCVO() *bool {
	accepted := s.cvo
	for _, keyring := range s.missing {
		one := new(false)
		for _, a := range s.of(keyring) {
			one = either(one, a.err.cvo)
		}
		accepted = both(accepted, one)
	}
	return accepted
}

// rank orders reasons by what they tell, the most telling first. What a trusted
// key did comes first. What could not be decided comes before what anybody may
// have put there, since the good signature may be the one that was not seen.
func rank(reason string) int {
	return slices.Index([]string{
		reasonKeyRevoked, reasonInvalidSignature, reasonWrongDigest, reasonInvalidClaim,
		reasonTrailingData, reasonDuplicateField, reasonFieldCase, reasonUnsignedAttributes,
		reasonSignatureExpired, reasonNotYetValid, reasonKeyNotYetValid, reasonWeakDigest,
		reasonUnsupportedSignature, reasonTimeout, reasonStoreUnavailable, reasonInvalidStore, reasonNoStores,
		reasonTooManySignatures, reasonUnknownKey, reasonMalformedSignature, reasonTooLarge,
	}, reason)
}

// storeError says why a store gave no signature.
func storeError(err error) *Error {
	var timeout net.Error
	var known *Error
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, errTooLarge):
		return newError(reasonTooLarge, "larger than %d bytes", maxSignatureBytes)
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return newError(reasonTimeout, "no answer in time: %v", err)
	}
	return newError(reasonStoreUnavailable, "could not be read: %v", err)
}
