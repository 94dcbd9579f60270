// Package imageset answers: what does oc-mirror need to mirror the releases of a path?
//
// oc-mirror follows recommended updates of one channel only, breadth first. If that search finds the path, one
// configuration suffices; otherwise there is one for each release. The release that the path starts from is
// mirrored as well: an update service offers updates only between releases that it has.
//
// Source: openshift/oc-mirror, internal/pkg/release/core-cincinnati.go and api/v2alpha1/type_config.go.
package imageset

import (
	"fmt"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/collector/updateplan/graph"
	"github.com/openshift/update-preflight/collector/updateplan/path"
)

// Format is a version of the configuration.
type Format string

// The formats: V2 is for oc-mirror --v2, V1 for its former version.
const (
	V2 Format = "v2alpha1"
	V1 Format = "v1alpha2"
)

// File is one ImageSetConfiguration. The files of a path are mirrored one after the other to the same mirror.
type File struct {
	Name    string
	Content []byte
	// Releases are the versions that oc-mirror mirrors for it.
	Releases []string
}

type configuration struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Storage    *storage `json:"storageConfig,omitempty"`
	Mirror     mirror   `json:"mirror"`
}

type storage struct {
	Local struct {
		Path string `json:"path"`
	} `json:"local"`
}

type mirror struct {
	Platform platform `json:"platform"`
}

type platform struct {
	// Graph includes the image of the update service.
	Graph         bool      `json:"graph"`
	Architectures []string  `json:"architectures"`
	Channels      []channel `json:"channels"`
}

type channel struct {
	Name         string `json:"name"`
	Type         string `json:"type"`
	MinVersion   string `json:"minVersion"`
	MaxVersion   string `json:"maxVersion"`
	ShortestPath bool   `json:"shortestPath,omitempty"`
}

// Files are the configurations for the releases of a path, in the order in which they are
// mirrored. The sources of the graph are the names of its channels.
func Files(g *graph.Graph, found path.Path, architecture string, format Format) ([]File, error) {
	versions := found.Versions()
	for _, name := range channelsOf(found) {
		if slices.Equal(Search(g, name, versions[0], versions[len(versions)-1]), versions) {
			file, err := write(channel{Name: name, MinVersion: versions[0], MaxVersion: versions[len(versions)-1], ShortestPath: true}, architecture,
				format)
			file.Name, file.Releases = "imageset.yaml", versions
			return []File{file}, err
		}
	}
	var files []File
	for i, version := range versions {
		sources := g.Sources(g.Find(version))
		if len(sources) == 0 {
			return nil, fmt.Errorf("%s is in no channel", version)
		}
		file, err := write(channel{Name: sources[len(sources)-1], MinVersion: version, MaxVersion: version}, architecture, format)
		if err != nil {
			return nil, err
		}
		file.Name, file.Releases = fmt.Sprintf("imageset-%d-%s.yaml", i+1, version), []string{version}
		files = append(files, file)
	}
	return files, nil
}

func channelsOf(found path.Path) []string {
	if len(found) == 0 {
		return nil
	}
	common := slices.Clone(found[0].Sources)
	for _, hop := range found[1:] {
		common = slices.DeleteFunc(common, func(name string) bool { return !slices.Contains(hop.Sources, name) })
	}
	return common
}

func write(c channel, architecture string, format Format) (File, error) {
	c.Type = "ocp"
	written := configuration{
		APIVersion: "mirror.openshift.io/" + string(format), Kind: "ImageSetConfiguration",
		Mirror: mirror{Platform: platform{Graph: true, Architectures: []string{architecture}, Channels: []channel{c}}},
	}
	if format == V1 {
		written.Storage = &storage{}
		written.Storage.Local.Path = "./oc-mirror"
	}
	content, err := yaml.Marshal(written)
	return File{Content: content}, err
}

// Search returns the path that oc-mirror finds with shortestPath in one channel: the fewest recommended updates,
// newest first; nil if there is none.
func Search(g *graph.Graph, channel, from, to string) []string {
	start, end := g.Find(from), g.Find(to)
	if start < 0 || end < 0 {
		return nil
	}
	next := map[int][]int{}
	for _, update := range slices.Backward(g.Updates) {
		if len(update.Risks) == 0 && slices.Contains(update.Sources, channel) {
			next[update.From] = append(next[update.From], update.To)
		}
	}
	before := map[int]int{start: -1}
	for queue := []int{start}; len(queue) > 0 && queue[0] != end; queue = queue[1:] {
		for _, release := range next[queue[0]] {
			if _, seen := before[release]; !seen {
				before[release] = queue[0]
				queue = append(queue, release)
			}
		}
	}
	if _, reached := before[end]; !reached {
		return nil
	}
	var versions []string
	for release := end; release >= 0; release = before[release] {
		versions = append(versions, g.Releases[release].Version)
	}
	slices.Reverse(versions)
	return versions
}
