// A job's report for people.
#ifndef LOCKSTEP_CLI_JOB_REPORT_TEXT_H_
#define LOCKSTEP_CLI_JOB_REPORT_TEXT_H_

#include <string>
#include <vector>

#include "cli/cluster_session.h"
#include "cli/console.h"
#include "lockstep/v1/job_service.pb.h"
#include "lockstep/v1/step_report.pb.h"

namespace lockstep {

// "PENDING".
std::string StateWord(v1::JobState state);

// A line that says how the job stands, then losses, speed, memory, checkpoint
// and what went wrong, as far as there are such.
std::string ReportText(const v1::JobReport& report);

// How to call this program for the same cluster from the same folder:
// "./lockstep", with `--dir` or `--coordinator` behind the verb where needed.
std::string CommandText(const Console& console, const ClusterFlags& flags,
                        const std::string& verb_and_arguments);

// Commands worth typing after the job has ended, one a line, indented.
std::string NextCommands(const Console& console, const ClusterFlags& flags,
                         const v1::JobInfo& job, const v1::JobReport& report);

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_JOB_REPORT_TEXT_H_
