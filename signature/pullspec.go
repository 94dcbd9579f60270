package signature

import (
	"regexp"
	"strings"
)

// maxPullSpecText bounds the part of an invalid pull spec repeated in a message,
// in bytes.
const maxPullSpecText = 256

// parsePullSpec returns the digest of repository@sha256:<64 hex>, the only form
// that is immutable.
func parsePullSpec(pullSpec string) (string, error) {
	shown := pullSpec
	if len(shown) > maxPullSpecText {
		shown = shown[:maxPullSpecText]
	}
	repository, digest, ok := strings.Cut(pullSpec, "@")
	if !ok {
		return "", newError(ReasonInvalidPullSpec, "pull spec %q has no digest, and a tag cannot be verified", shown)
	}
	if !regexp.MustCompile(`^sha256:[0-9a-f]{64}$`).MatchString(digest) {
		return "", newError(ReasonInvalidPullSpec, "pull spec %q does not end in sha256: and 64 lower-case hex digits", shown)
	}
	// host[:port]/path as in the distribution project, without a tag.
	name := regexp.MustCompile(`^([A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9a-fA-F:]+\])(:[0-9]{1,5})?` +
		`(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)+$`)
	if !name.MatchString(repository) {
		return "", newError(ReasonInvalidPullSpec, "pull spec %q is not registry/repository@sha256:<hex>; a tag beside the digest is not allowed", shown)
	}
	return digest, nil
}
