package perftool

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// row is in the tool's own units: MiB, MiB/s, records, records/s, ms; wall in s.
type row struct {
	size, mib, mibSec                        float64
	records                                  int64
	rate, rebalance, fetch, fetchMib, fetch2 float64
	wall                                     float64
}

func TestConsumer(t *testing.T) {
	tests := []struct {
		file string
		row  row
		idle float64 // ms
	}{
		{"38-consumer-0.8.csv", row{1048576, 953.6743, 47.6837, 10000000, 500000, none, none, none, none, 20}, none},
		{"38-consumer-0.10.csv", row{none, 476.8372, 119.2093, 5000000, 1250000, none, none, none, none, 4}, none},
		{"38-consumer-3.7.csv", row{none, 976.5625, 73.5640, 1000000, 75329.5669, 3275, 10000, 97.6563, 100000, 13.275}, none},
		{"consumer-2.8.2-idle.txt", row{none, 286.1023, 43.0100, 300000, 45099.2183, 229, 6423, 44.5434, 46707.1462, 6.652}, 5000},
		{"consumer-3.9.1.txt", row{none, 286.1023, 196.9045, 300000, 206469.3737, 228, 1225, 233.5529, 244897.9592, 1.453}, none},
		{"consumer-4.4.0.txt", row{none, 286.1023, 179.7125, 300000, 188442.2111, 525, 1067, 268.1371, 281162.1368, 1.592}, none},
		{"consumer-4.4.0-idle.txt", row{none, 286.1023, 56.8792, 300000, 59642.1471, 295, 4735, 60.4229, 63357.9725, 5.03}, 4000},
	}
	for _, tt := range tests {
		t.Run(tt.file, func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join("testdata", tt.file))
			if err != nil {
				t.Fatal(err)
			}
			c := consumerOf(string(data))
			if len(c.Rows) != 1 || len(c.Warnings)+len(c.Other) > 0 || c.Detailed {
				t.Fatalf("got %+v", c)
			}
			sameRow(t, c.Rows[0], tt.row)
			same(t, "idle", c.Idle, tt.idle/1000)
		})
	}
}

// consumerOf reads a whole output.
func consumerOf(text string) *Consumer {
	var r ConsumerReader
	for line := range strings.Lines(text) {
		r.Line(strings.TrimRight(line, "\r\n"))
	}
	return r.Result()
}

func sameRow(t *testing.T, got ConsumerRow, want row) {
	t.Helper()
	same(t, "fetch.size", got.FetchSize, want.size)
	same(t, "MB", got.Bytes, want.mib*1024*1024)
	same(t, "MB.sec", got.Throughput, want.mibSec*1024*1024)
	same(t, "nMsg.sec", got.Rate, want.rate)
	same(t, "rebalance", got.Rebalance, want.rebalance/1000)
	same(t, "fetch", got.Fetch, want.fetch/1000)
	same(t, "fetch.MB.sec", got.FetchThroughput, want.fetchMib*1024*1024)
	same(t, "fetch.nMsg.sec", got.FetchRate, want.fetch2)
	wall := got.End.Sub(got.Start).Seconds()
	same(t, "wall", &wall, want.wall)
	if got.Records != want.records {
		t.Errorf("%d records, want %d", got.Records, want.records)
	}
}

func TestConsumerForms(t *testing.T) {
	const wrong = "the tool of Kafka 1.0 to 2.7 printed a wrong rebalance time: its four fetch columns are left out"
	tests := []struct {
		name, text string
		rows       int
		detailed   bool
		thread     string
		records    int64
		fetch      float64
		warnings   []string
	}{
		{"header hidden, new", "2024-05-01 10:00:00:127, 2024-05-01 10:00:13:402, 976.5625, 73.5640, 1000000, 75329.5669, 3275, 10000, 97.6563, 100000.0000",
			1, false, "", 1000000, 10, []string{"the header was hidden: columns decided by their number (10)"}},
		{"header hidden, old", "2014-06-03 09:30:00:005, 2014-06-03 09:30:20:005, 1048576, 953.6743, 47.6837, 10000000, 500000.0000",
			1, false, "", 10000000, none, []string{"the header was hidden: columns decided by their number (7)"}},
		{"header hidden, detailed", "2024-05-01 10:00:05:127, 0, 100.0000, 20.0000, 5000, 1000.0000, 3275, 1725, 57.9710, 2898.5507",
			1, true, "0", 5000, 1.725, []string{"the header was hidden: columns decided by their number (10)"}},
		{"detailed", "time, threadId, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec\n" +
			"2024-05-01 10:00:05:127, 0, 100.0000, 20.0000, 5000, 1000.0000, 3275, 1725, 57.9710, 2898.5507\n" +
			"2024-05-01 10:00:10:127, 0, 200.0000, 20.0000, 10000, 1000.0000, 0, 5000, 20.0000, 1000.0000", 2, true, "0", 5000, 1.725, nil},
		{"detailed, id without a name", "time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec\n" +
			"2016-11-02 14:00:10:250, 7, 100.0000, 20.0000, 5000, 1000.0000", 1, true, "7", 5000, none, nil},
		{"detailed of 0.8", "time, fetch.size, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec\n" +
			"2014-06-03 09:30:05:005, 3, 1048576, 100.0000, 20.0000, 5000, 1000.0000", 1, true, "3", 5000, none, nil},
		{"wrong rebalance time", columnsNew + "\n2018-05-01 10:00:00:127, 2018-05-01 10:00:13:402, 976.5625, 73.5640, 1000000, 75329.5669, 1525168813402, -1525168800127, -0.0000, -0.0007",
			1, false, "", 1000000, none, []string{wrong}},
		{"share consumer", "start.time, end.time, data.consumed.in.MB, MB.sec, nMsg.sec, data.consumed.in.nMsg, fetch.time.ms\n" +
			"2025-09-01 10:00:00:000, 2025-09-01 10:00:10:000, 100.0000, 10.0000, 5000.0000, 50000, 10000", 1, false, "", 50000, 10, nil},
		{"decimal commas", columnsMid + "\n2016-11-02 14:00:10:250, 2016-11-02 14:00:14:250, 476,8372, 119,2093, 5000000, 1250000,0000", 1, false, "", 5000000, none, nil},
		{"deprecation first", "WARNING: option [threads] and [num-fetch-threads] have been deprecated and will be ignored by the test\n" + columnsMid +
			"\n2016-11-02 14:00:10:250, 2016-11-02 14:00:14:250, 476.8372, 119.2093, 5000000, 1250000.0000", 1, false, "", 5000000, none, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := consumerOf(tt.text)
			if len(c.Rows) != tt.rows || c.Detailed != tt.detailed || !reflect.DeepEqual(c.Warnings, tt.warnings) {
				t.Fatalf("got %+v", c)
			}
			got := c.Rows[0]
			if got.Thread != tt.thread || got.Records != tt.records {
				t.Errorf("thread %q, %d records; want %q, %d", got.Thread, got.Records, tt.thread, tt.records)
			}
			same(t, "fetch", got.Fetch, tt.fetch)
		})
	}
}
