package recordformat

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/update-preflight/runner/record"
)

const (
	keyMAC        = "record.mac"
	keyVerdictMAC = "verdict.mac"

	domainRecord  = "preflight.openshift.io/record.mac/v1"
	domainVerdict = "preflight.openshift.io/verdict.mac/v1"
	domainDigests = "preflight.openshift.io/baseline.digests/v1"

	// digestDigits is the length of a digest of a name: 64 bits, of which a million names have two equal ones once in
	// 37 million baselines.
	digestDigits = 16
)

// Key authenticates records; nil if there is none.
type Key []byte

// sum returns the MAC of a message in a domain, in hex: HMAC-SHA256, keyed with the HMAC-SHA256 of the domain.
func (k Key) sum(domain string, message []byte) string {
	derived := hmac.New(sha256.New, k)
	derived.Write([]byte(domain))
	mac := hmac.New(sha256.New, derived.Sum(nil))
	mac.Write(message)
	return hex.EncodeToString(mac.Sum(nil))
}

// Digest is a digest of a name, by which names can be compared and not be read: without the key, they cannot be guessed
// and tried either.
func (k Key) Digest(name string) string { return k.sum(domainDigests, []byte(name))[:digestDigits] }

// LoadedKey is the key, or what its absence means for the authentication of records.
type LoadedKey struct {
	Key     Key
	Without record.Authentication
	// Absent is true if the Secret does not exist.
	Absent bool
}

// Seal sets the MACs of a header, whose UID the API server has assigned, or of a part,
// whose owner is the header. A header without a UID gets only that of its verdict.
func (k Key) Seal(object *corev1.ConfigMap, id string) {
	delete(object.Data, keyMAC)
	delete(object.Data, keyVerdictMAC)
	if k == nil {
		return
	}
	if object.Data == nil {
		object.Data = map[string]string{}
	}
	if text, ok := object.Data[KeyVerdict]; ok {
		object.Data[keyVerdictMAC] = k.sum(domainVerdict, []byte(text))
	}
	header := object.UID
	if len(object.OwnerReferences) > 0 {
		header = object.OwnerReferences[0].UID
	}
	if header != "" {
		object.Data[keyMAC] = k.sum(domainRecord, canonical(object, id, header))
	}
}

// Authentication describes how what this process writes is authenticated.
func (l LoadedKey) Authentication() record.Authentication {
	if l.Key == nil {
		return l.Without
	}
	return record.Authentication{State: record.Authentic}
}

// Verify verifies the MAC of a header or part of the run; header is the UID of the header.
func (l LoadedKey) Verify(object *corev1.ConfigMap, id string, header types.UID) record.Authentication {
	switch mac := object.Data[keyMAC]; {
	case mac == "":
		return Unauthentic(object.Name, "has no MAC")
	case l.Key == nil:
		return l.Without
	case !hmac.Equal([]byte(mac), []byte(l.Key.sum(domainRecord, canonical(object, id, header)))):
		return Unauthentic(object.Name, "has a MAC that does not match its content")
	}
	return record.Authentication{State: record.Authentic}
}

// canonical is the content that a MAC covers: the object, the run, the UID of its
// header and all data but the MAC. Each text has its length before it, so that
// different contents have different encodings.
func canonical(object *corev1.ConfigMap, id string, header types.UID) []byte {
	var encoded []byte
	add := func(texts ...string) {
		for _, text := range texts {
			encoded = binary.BigEndian.AppendUint64(encoded, uint64(len(text)))
			encoded = append(encoded, text...)
		}
	}
	add(object.Namespace, object.Name, string(header), id)
	for _, name := range slices.Sorted(maps.Keys(object.Data)) {
		if name != keyMAC {
			add("data", name, object.Data[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(object.BinaryData)) {
		add("binaryData", name, string(object.BinaryData[name]))
	}
	return encoded
}

// Unauthentic is the result for a ConfigMap.
func Unauthentic(name, cause string) record.Authentication {
	return record.Authentication{State: record.Unauthentic, Cause: fmt.Sprintf("configmap %q %s", name, cause)}
}
