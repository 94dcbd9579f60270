package record

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
)

const (
	keyMAC        = "record.mac"
	keyVerdictMAC = "verdict.mac"

	domainRecord  = "preflight.openshift.io/record.mac/v1"
	domainVerdict = "preflight.openshift.io/verdict.mac/v1"
)

// key authenticates records; nil if there is none.
type key []byte

// sum returns the MAC of a message in a domain, in hex: HMAC-SHA256, keyed with the
// HMAC-SHA256 of the domain.
func (k key) sum(domain string, message []byte) string {
	derived := hmac.New(sha256.New, k)
	derived.Write([]byte(domain))
	mac := hmac.New(sha256.New, derived.Sum(nil))
	mac.Write(message)
	return hex.EncodeToString(mac.Sum(nil))
}

// loadedKey is the key, or what its absence means for the authentication of records.
type loadedKey struct {
	key     key
	without Authentication
	// absent is true if the Secret does not exist.
	absent bool
}

// seal sets the MACs of a header, whose UID the API server has assigned, or of a part,
// whose owner is the header. A header without a UID gets only that of its verdict.
func (k key) seal(object *corev1.ConfigMap, id string) {
	delete(object.Data, keyMAC)
	delete(object.Data, keyVerdictMAC)
	if k == nil {
		return
	}
	if object.Data == nil {
		object.Data = map[string]string{}
	}
	if text, ok := object.Data[keyVerdict]; ok {
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

// authentication is that of what this process writes.
func (l loadedKey) authentication() Authentication {
	if l.key == nil {
		return l.without
	}
	return Authentication{State: Authentic}
}

// verify verifies the MAC of a header or part of the run; header is the UID of the
// header.
func (l loadedKey) verify(object *corev1.ConfigMap, id string, header types.UID) Authentication {
	switch mac := object.Data[keyMAC]; {
	case mac == "":
		return unauthentic(object.Name, "has no MAC")
	case l.key == nil:
		return l.without
	case !hmac.Equal([]byte(mac), []byte(l.key.sum(domainRecord, canonical(object, id, header)))):
		return unauthentic(object.Name, "has a MAC that does not match its content")
	}
	return Authentication{State: Authentic}
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

// unauthentic is the result for a ConfigMap.
func unauthentic(name, cause string) Authentication {
	return Authentication{State: Unauthentic, Cause: fmt.Sprintf("configmap %q %s", name, cause)}
}
