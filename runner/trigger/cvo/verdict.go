package cvo

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"
)

const (
	// Namespace is the namespace of the records.
	Namespace = "openshift-cluster-version"
	// KeySecret is the Secret in Namespace with the key of the records, under "key".
	KeySecret = "preflight-record-key"

	domain = "preflight.openshift.io/verdict.mac/v1"
)

// Records are the recorded runs of one release.
type Records struct {
	// Image is the pull spec of the release that CVO would update to, by digest.
	Image string
	// From is the version that the cluster runs; a verdict on an update from another one
	// does not count. Empty for any.
	From string
	// Key is the content of KeySecret; nil if there is none.
	Key []byte
	// Data is the field "data" of each ConfigMap that Selector selects. The API server
	// bounds it to 1 MiB.
	Data []map[string]string
}

// Selector selects the ConfigMaps in Namespace that are records of a release, by the
// first twelve digits of its digest.
func Selector(image string) string {
	_, digest, _ := strings.Cut(image, "@sha256:")
	return "preflight.openshift.io/record,preflight.openshift.io/release=" + digest[:min(12, len(digest))]
}

// verdict has the fields of verdict.json (package runner/record) that are used; JSON
// spells them with a small first letter. Times are RFC 3339, in UTC.
type verdict struct {
	Digest, Version, Phase, Decision, CompletionTime, ValidUntil, From string
	Blocking, Undecided, Accepted, Narrowed                            []string
	Provisional, Forced                                                bool
}

// newest is the complete run of the release with that version that ended last, nil
// without one, and whether another run is in progress. Only authentic records count, and
// of a path only its first update.
func (r Records) newest(version string) (newest *verdict, running bool) {
	_, digest, _ := strings.Cut(r.Image, "@")
	for _, data := range r.Data {
		var found verdict
		switch text := data["verdict.json"]; {
		case digest == "" || len(r.Key) == 0:
		case !hmac.Equal([]byte(data["verdict.mac"]), []byte(hex.EncodeToString(sum(sum(r.Key, domain), text)))):
		case json.Unmarshal([]byte(text), &found) != nil || found.Digest != digest || found.Version != version || found.Provisional: //nolint:musttag // fewer lines for CVO to link
		case found.Phase == "Running":
			running = true
		case found.Phase == "Complete" && (newest == nil || found.isAfter(*newest)):
			newest = &found
		}
	}
	return newest, running
}

// isAfter reports whether the run ended after another; of two that ended in the same
// second, one that is not Ready is the later one.
func (v verdict) isAfter(other verdict) bool {
	return v.CompletionTime > other.CompletionTime || v.CompletionTime == other.CompletionTime && other.Decision == "Ready"
}

// since is when the verdict was given, or when it ended; zero where there is none, or its
// time is unknown.
func (v *verdict) since() time.Time {
	if v == nil {
		return time.Time{}
	}
	given, _ := time.Parse(time.RFC3339, v.CompletionTime)
	if ended, err := time.Parse(time.RFC3339, v.ValidUntil); err == nil && ended.After(given) && !ended.After(time.Now()) {
		return ended
	}
	return given
}

// sum is the HMAC-SHA256 of a text.
func sum(key []byte, text string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}
