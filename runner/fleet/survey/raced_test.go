//go:build race

package survey_test

import "time"

// addressSpace is the limit of the program under test: the race detector reserves terabytes, and needs a multiple of the memory.
const addressSpace = "unlimited"

// answerTime bounds the answer of a cluster, which takes several times as long under the race detector.
const answerTime = 2 * time.Minute
