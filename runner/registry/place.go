package registry

import (
	"fmt"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
)

const dockerHub = "docker.io"

// Place is a repository that an image may be pulled from.
type Place struct {
	// Repository is its name, for example "mirror.example.com:5000/ocp/release".
	Repository string
	// Mirror is false for the repository named by the pull spec.
	Mirror bool
	// Closed is why the cluster does not contact the place; empty when it does.
	Closed string

	insecure bool
}

// String names the place in messages.
func (p Place) String() string {
	if p.Mirror {
		return fmt.Sprintf("mirror %q", p.Repository)
	}
	return fmt.Sprintf("source %q", p.Repository)
}

func (p Place) reference(identifier string) (name.Reference, error) {
	separator := ":"
	if strings.Contains(identifier, ":") {
		separator = "@"
	}
	var options []name.Option
	if p.insecure {
		options = append(options, name.Insecure)
	}
	return name.ParseReference(p.Repository+separator+identifier, options...)
}

func parse(pullSpec string) (name.Reference, error) {
	reference, err := name.ParseReference(pullSpec)
	if err != nil {
		return nil, &Error{
			Reason: ReasonInvalidPullSpec, Message: fmt.Sprintf("%q is not a pull spec", oneLine(pullSpec)), Err: err,
			Remediation: "Name the image as REPOSITORY@sha256:DIGEST.",
		}
	}
	return reference, nil
}

// repositoryOf is the name of the repository in configuration, where Docker Hub is
// called docker.io.
func repositoryOf(reference name.Reference) string {
	repository := reference.Context().Name()
	if rest, ok := strings.CutPrefix(repository, name.DefaultRegistry+"/"); ok {
		return dockerHub + "/" + rest
	}
	return repository
}

// byTag reports whether the mirrors of tags apply to an image, not those of digests.
func byTag(reference name.Reference) bool {
	_, digest := reference.(name.Digest)
	return !digest
}
