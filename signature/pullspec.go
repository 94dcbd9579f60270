package signature

import (
	"regexp"
	"strings"
)

// maxQuoted bounds what is quoted of a bad pull spec, in bytes.
const maxQuoted = 256

// parsePullSpec returns the digest of repository@sha256:<64 hex>, the one form
// that names the same bytes for ever.
func parsePullSpec(pullSpec string) (string, error) {
	quoted := pullSpec
	if len(quoted) > maxQuoted {
		quoted = quoted[:maxQuoted]
	}
	repository, digest, ok := strings.Cut(pullSpec, "@")
	if !ok {
		return "", newError(ReasonInvalidPullSpec, "pull spec %q has no digest, and a tag cannot be verified", quoted)
	}
	if !regexp.MustCompile(`^sha256:[0-9a-f]{64}$`).MatchString(digest) {
		return "", newError(ReasonInvalidPullSpec, "pull spec %q does not end in sha256: and 64 lower-case hex digits", quoted)
	}
	// host[:port]/path, as the distribution project has it, without a tag.
	name := regexp.MustCompile(`^([A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9a-fA-F:]+\])(:[0-9]{1,5})?` +
		`(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)+$`)
	if !name.MatchString(repository) {
		return "", newError(ReasonInvalidPullSpec, "pull spec %q is not registry/repository@sha256:<hex>; a tag beside the digest is not allowed", quoted)
	}
	return digest, nil
}
