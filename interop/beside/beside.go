// Package beside measures Go code and puts it in a table beside the results of one of our benchmarks.
package beside

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// Wanted is how many times as fast as Go's our code has to be.
const Wanted = 8

// Must ends the program where there is an error.
func Must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Root is the top of the source tree, wherever in it the program runs.
func Root() string {
	at, err := os.Getwd()
	Must(err)
	for {
		if _, err := os.Stat(filepath.Join(at, "api", "core")); err == nil {
			return at
		}
		if at == filepath.Dir(at) {
			Must(fmt.Errorf("run this inside the source tree"))
		}
		at = filepath.Dir(at)
	}
}

// Pod is the file with the pod that all comparisons use.
func Pod() string {
	return filepath.Join(Root(), "interop", "codecbench", "testdata", "pod.json")
}

// Figures are what one call takes.
type Figures struct {
	Nanoseconds float64 // of CPU time, with what the garbage collector takes: wall time would count the machine's other work
	Allocations float64
}

func cpu() time.Duration {
	var usage syscall.Rusage
	Must(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// Measure calls the function for about a second.
func Measure(work func()) Figures {
	for range 20 {
		work() // the caches of reflection
	}
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begin, rounds := cpu(), 0
	for cpu()-begin < time.Second {
		for range 10 {
			work()
		}
		rounds += 10
	}
	took := cpu() - begin
	runtime.ReadMemStats(&after)
	return Figures{float64(took) / float64(rounds), float64(after.Mallocs-before.Mallocs) / float64(rounds)}
}

// Ours is a result of our benchmark.
type Ours struct {
	Name        string  `json:"name"`
	Time        float64 `json:"cpu_time"`
	Rate        float64 `json:"bytes_per_second"` // 0 if unknown
	Allocations float64 `json:"allocations"`      // the same
	Bytes       float64 `json:"program_bytes"`    // of memory of a compiled expression; the same
}

// Run runs our benchmark program in the root of the source tree, with the pod's file in KEELSON_POD.
func Run(environment ...string) []Ours {
	if len(os.Args) != 2 {
		Must(fmt.Errorf("usage: go run . OUR_BENCHMARK_PROGRAM (or tools/beside.sh)"))
	}
	program, err := filepath.Abs(os.Args[1])
	Must(err)
	// The best of three: another program's turn on the processor's caches is no part of the result.
	command := exec.Command(program, "--benchmark_format=json", "--benchmark_min_time=0.3", "--benchmark_repetitions=3")
	command.Dir = Root()
	command.Env = append(append(os.Environ(), "KEELSON_POD="+Pod()), environment...)
	output, err := command.Output()
	Must(err)
	var report struct {
		Benchmarks []struct {
			Ours
			Kind string `json:"run_type"`
		} `json:"benchmarks"`
	}
	Must(json.Unmarshal(output, &report))
	var results []Ours
	for _, one := range report.Benchmarks {
		if one.Kind == "aggregate" {
			continue
		}
		if last := len(results) - 1; last >= 0 && results[last].Name == one.Name {
			if one.Time < results[last].Time {
				results[last] = one.Ours
			}
			continue
		}
		results = append(results, one.Ours)
	}
	return results
}

// Table has a row per operation.
type Table struct {
	rows, met int
}

// Row prints one. Theirs is the best of three as well.
func (t *Table) Row(name string, work func(), ours Ours) {
	if t.rows == 0 {
		fmt.Printf("%-26s %12s %12s %8s %12s %14s %10s\n", "operation", "Go ns", "Keelson ns", "ratio", "Go allocs", "Keelson allocs", "JSON MB/s")
	}
	theirs := Measure(work)
	for range 2 {
		if again := Measure(work); again.Nanoseconds < theirs.Nanoseconds {
			theirs = again
		}
	}
	ratio := theirs.Nanoseconds / ours.Time
	t.rows++
	mark := ""
	if ratio >= Wanted {
		t.met++
	} else {
		mark = fmt.Sprintf("  below %dx", Wanted)
	}
	allocations, rate := "-", "-"
	if strings.HasPrefix(name, "JSON") || strings.HasPrefix(name, "Proto") {
		allocations = fmt.Sprintf("%.0f", ours.Allocations)
		rate = fmt.Sprintf("%.0f", ours.Rate/1e6)
	}
	fmt.Printf("%-26s %12.0f %12.0f %7.1fx %12.0f %14s %10s%s\n", name, theirs.Nanoseconds, ours.Time, ratio, theirs.Allocations,
		allocations, rate, mark)
}

// End prints how many rows are as fast as wanted.
func (t *Table) End() {
	fmt.Printf("%d of %d at least %d times as fast as Go\n", t.met, t.rows, Wanted)
}
