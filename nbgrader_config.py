"""For instructors who run nbgrader's own commands here: solutions/ are its source, labs/ its release.

`manyhands build` runs the same preprocessors, without a gradebook.
"""

from manyhands.build.labs import preprocessors

c = get_config()  # noqa: F821 (nbgrader gives it)
c.CourseDirectory.course_id = "manyhands"
c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "labs"
c.GenerateAssignment.preprocessors = preprocessors(gradebook=True)
c.ExecutePreprocessor.timeout = 120
