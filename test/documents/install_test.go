package documents_test

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestPlatforms fails for a platform or a file of a release that the page about the
// installation does not name.
func TestPlatforms(t *testing.T) {
	var release struct {
		Builds []struct {
			Targets []string `json:"targets"`
		} `json:"builds"`
		Checksum struct {
			NameTemplate string `json:"name_template"`
		} `json:"checksum"`
		SBOMs []struct {
			Documents []string `json:"documents"`
		} `json:"sboms"`
	}
	if err := yaml.Unmarshal([]byte(read(t, ".goreleaser.yaml")), &release); err != nil {
		t.Fatal(err)
	}
	page := read(t, "cmd/oc-preflight/INSTALL.md")
	names := []string{release.Checksum.NameTemplate}
	names = append(names, strings.NewReplacer("{{ .ProjectName }}", "oc-preflight", "{{ .Os }}", "OS", "{{ .Arch }}",
		"ARCH").Replace(release.SBOMs[0].Documents[0]))
	for _, target := range release.Builds[0].Targets {
		names = append(names, strings.Split(target, "_")...)
	}
	for _, name := range names {
		if !strings.Contains(page, name) {
			t.Errorf("INSTALL.md does not name %q of the release", name)
		}
	}
}
