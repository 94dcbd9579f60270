package update

import "strings"

// Release names one release of OpenShift.
type Release struct {
	// Version is a semantic version; empty where only the image is known.
	Version string
	// Image is a pull spec, by digest wherever a release is read or run.
	Image string
}

// Digest is the digest ("sha256:…") of the image; empty for a pull spec by tag.
func (r Release) Digest() string {
	_, digest, _ := strings.Cut(r.Image, "@")
	return digest
}

// KindOf is the kind of update between two versions; empty for versions that cannot be compared.
func KindOf(from, to string) string {
	parsed, err := Parse(from, to)
	if err != nil {
		return ""
	}
	return string(parsed.Kind())
}
