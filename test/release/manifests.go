package release

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"strings"

	imagev1 "github.com/openshift/api/image/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const directory = "release-manifests/"

// metadata is the file release-metadata (cluster-version-operator
// pkg/payload/payload.go).
type metadata struct {
	Kind     string            `json:"kind"`
	Version  string            `json:"version"`
	Previous []string          `json:"previous"`
	Metadata map[string]string `json:"metadata,omitempty"`
}

// manifests returns the files of the last layer.
func (r Release) manifests() (map[string]File, error) {
	texts, err := r.componentManifests()
	if err != nil {
		return nil, err
	}
	if texts["image-references"], err = r.imageReferences(); err != nil {
		return nil, err
	}
	if texts["release-metadata"], err = r.releaseMetadata(); err != nil {
		return nil, err
	}
	for i := range r.Padding {
		texts[fmt.Sprintf("0000_90_padding_%05d.yaml", i)] = padding(i, r.PaddingBytes)
	}
	maps.Copy(texts, r.Raw)
	files := map[string]File{}
	for name, text := range texts {
		files[directory+name] = File{Data: []byte(text)}
	}
	return files, nil
}

// componentManifests returns the manifests of the components by their name in the
// release, with substituted images.
func (r Release) componentManifests() (map[string]string, error) {
	texts := map[string]string{}
	for _, component := range r.Components {
		for name, text := range component.Manifests {
			if !strings.HasPrefix(name, "0000_") {
				name = "0000_50_" + component.Name + "_" + name
			}
			if _, ok := texts[name]; ok {
				return nil, fmt.Errorf("two components have a manifest %q", name)
			}
			texts[name] = r.substitute(text)
		}
	}
	return texts, nil
}

// substitute replaces the sources of the components in text by their images. As in oc,
// an occurrence follows a character that is not part of a name, and precedes white
// space, a quote or the end.
func (r Release) substitute(text string) string {
	for _, component := range r.Components {
		if component.Source == "" {
			continue
		}
		mention := regexp.MustCompile(`(^|[^\w./-])` + regexp.QuoteMeta(component.Source) +
			`(?::\w[\w.-]{0,127}|@sha256:[0-9a-f]+)?(\s|["']|$)`)
		text = mention.ReplaceAllString(text, "${1}"+component.Image+"${2}")
	}
	return text
}

// imageReferences is the file image-references.
func (r Release) imageReferences() (string, error) {
	stream := imagev1.ImageStream{
		TypeMeta:   metav1.TypeMeta{APIVersion: imagev1.GroupVersion.String(), Kind: "ImageStream"},
		ObjectMeta: metav1.ObjectMeta{Name: r.Version},
	}
	for _, component := range r.Components {
		if component.Image == "" {
			continue
		}
		stream.Spec.Tags = append(stream.Spec.Tags, imagev1.TagReference{
			Name: component.Name,
			From: &corev1.ObjectReference{Kind: "DockerImage", Name: component.Image},
		})
	}
	return indented(stream)
}

// releaseMetadata is the file release-metadata.
func (r Release) releaseMetadata() (string, error) {
	previous := r.Previous
	if previous == nil {
		previous = []string{}
	}
	return indented(metadata{
		Kind: "cincinnati-metadata-v0", Version: r.Version, Previous: previous, Metadata: r.Metadata,
	})
}

func indented(value any) (string, error) {
	data, err := json.MarshalIndent(value, "", "  ")
	return string(data), err
}
